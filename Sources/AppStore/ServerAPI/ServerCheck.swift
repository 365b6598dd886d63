package import AsyncHTTPClient
import JSON
import Subscriptions

extension ServerAPIClient {
    /// Returns a client of the real App Store Server API over HTTP, through a `client` of `AppStoreOptions.withClient`.
    /// `verifier` verifies every signed text of an answer.
    package static func live(
        _ options: ServerAPIOptions, client: HTTPClient, verifier: SignedTextVerifier
    ) -> ServerAPIClient {
        let caller = ServerCaller(
            options: options, http: HTTPCall(client: client, responseBytesMax: ServerAPIOptions.responseBytesMax),
            tokens: ServerTokens())
        return ServerAPIClient { request in
            let end = ContinuousClock.now + options.deadline
            return await SupportRun(caller: caller, verifier: verifier, request: request, end: end).run()
        } read: { request in
            await ServerCheck(caller: caller, verifier: verifier, request: request).run()
        }
    }
}

/// One check: some calls under one deadline.
struct ServerCheck: Sendable {
    /// The time that a further page needs at least.
    static let pageTime = Duration.seconds(3)

    let caller: ServerCaller
    let verifier: SignedTextVerifier
    let request: ServerRequest

    func run() async -> AppStoreAnswer {
        let start = ContinuousClock.now
        let end = start + caller.options.deadline
        let first = request.sandboxAllowed ? request.askFirst : .production
        var reading = await reading(of: first, until: end)
        if first == .production, mayBeInSandbox(reading.verdict), ContinuousClock.now < end {
            reading = await self.reading(of: .sandbox, until: end, calls: reading.calls)
        }
        return AppStoreAnswer(
            environment: reading.gathered.environment, server: reading.verdict, httpStatus: reading.last.httpStatus,
            body: reading.verdict.contents == nil ? [] : reading.gathered.json,
            failureDetail: reading.last.failureDetail, calls: reading.calls,
            elapsedMilliseconds: start.duration(to: .now).wholeMilliseconds,
            retryAfterSeconds: reading.last.retryAfterSeconds, lastEndpoint: reading.lastEndpoint)
    }

    /// Whether the sandbox may know what production does not. Production refuses the key of an app without a release.
    private func mayBeInSandbox(_ verdict: ServerVerdict) -> Bool {
        guard request.isFirstSight, request.sandboxAllowed else { return false }
        switch verdict {
        case .keyRefused: return !caller.tokens.isAccepted(request.key, in: .production)
        case .unknownTransaction(let code): return ServerErrorMeaning(code) == .unknownHere
        case .answered, .idRefused, .otherSubject, .appRefused, .unverified, .ourFault, .noAnswer: return false
        }
    }

    private func reading(
        of environment: StoreEnvironment, until end: ContinuousClock.Instant, calls: Int = 0
    ) async -> EnvironmentReading {
        let gathered = GatheredAnswers(
            transactionID: request.transactionID, environment: environment, from: request.revision)
        var reading = EnvironmentReading(check: self, end: end, gathered: gathered, calls: calls)
        do throws(ServerVerdict) {
            reading.verdict = .answered(try await reading.read())
        } catch {
            reading.verdict = error
        }
        return reading
    }
}

/// What one environment says in a check.
private struct EnvironmentReading {
    let check: ServerCheck
    let end: ContinuousClock.Instant
    var gathered: GatheredAnswers
    var calls: Int
    var last = CallResult()
    var lastEndpoint = ServerEndpoint.statuses
    var verdict = ServerVerdict.noAnswer(CallFailure.noTimeLeft, code: nil)

    private var request: ServerRequest { check.request }

    /// Returns what the answers hold, once all of it is verified.
    mutating func read() async throws(ServerVerdict) -> ServerContents {
        try await gather()
        let contents = try contents()
        if let fault = await contents.fault(of: request, by: check.verifier) { throw fault }
        return request.isFirstSight && !contents.listsAsked ? try await naming(contents) : contents
    }

    private func contents() throws(ServerVerdict) -> ServerContents {
        guard let contents = ServerContents(reading: gathered.json) else { throw .unreadable }
        return contents
    }

    /// Returns the contents with a text that names the asked transaction, whose id they lack: one purchase has several
    /// ids, by restores and on other devices. Refuses them where they lack its purchase too.
    private mutating func naming(_ contents: ServerContents) async throws(ServerVerdict) -> ServerContents {
        // A part of a long history need not hold the purchase.
        if contents.goesOn, request.signedText == nil { return contents }
        gathered.named = try await named()
        let named = try self.contents()
        if let fault = await named.faultInName(of: request, by: check.verifier) { throw fault }
        guard named.listsNamed || named.goesOn else { throw .lacksAsked }
        return named
    }

    /// Returns what names the asked transaction: the text that the device sent, else Apple's answer about it.
    private mutating func named() async throws(ServerVerdict) -> [UInt8] {
        if let text = request.signedText {
            return JSONText { $0.member("signedTransactionInfo", String(decoding: text, as: UTF8.self)) }.bytes
        }
        try await reserve(.transaction)
        let reply = await reply(to: .transaction(request.transactionID), of: .transaction)
        do throws(ServerVerdict) {
            return try document(of: reply).bytes
        } catch {
            throw error.isAboutTransaction ? .lacksAsked : error
        }
    }

    /// Reads the statuses, then the history: what happens meanwhile, the history shows. Both calls are reserved before
    /// the first one, so that no call is made whose answer could not count.
    private mutating func gather() async throws(ServerVerdict) {
        for endpoint in [ServerEndpoint.statuses, .history] { try await reserve(endpoint) }
        try await readStatuses()
        try await readHistory()
    }

    private func reserve(_ endpoint: ServerEndpoint) async throws(ServerVerdict) {
        let (turn, environment) = (request.turn, gathered.environment)
        guard await ServerCaller.awaits({ await turn(environment, endpoint) }, until: end) else {
            throw .noAnswer(ServerCaller.noTurn, code: nil)
        }
    }

    /// Reads the statuses. A customer without subscriptions has a history alone.
    private mutating func readStatuses() async throws(ServerVerdict) {
        let reply = await reply(to: .statuses(of: request.transactionID), of: .statuses)
        if case .error(_, .unknownHere) = reply { return }
        gathered.statuses = try document(of: reply).bytes
    }

    /// Reads the history from a place on, at most `pagesMax` pages; the call of the first one is reserved. A place that
    /// Apple does not know any more is dropped once: the history is read from its start.
    private mutating func readHistory() async throws(ServerVerdict) {
        var (pages, revision): ([[UInt8]], String?) = ([], gathered.from)
        var (mayRestart, isReserved) = (true, true)
        while true {
            if !isReserved { try await reserve(.history) }
            isReserved = false
            let reply = await reply(to: .history(of: request.transactionID, from: revision), of: .history)
            if case .error(_, .placeLost) = reply, mayRestart {
                (pages, revision, mayRestart) = ([], nil, false)
                gathered.from = nil
                continue
            }
            let page = try document(of: reply)
            let members = JSONObject(page)
            pages.append(page.bytes)
            let next = members?.text("revision")
            let isFull = pages.count == check.caller.options.pagesMax
            if members?.text("hasMore") != "true" || isFull || ContinuousClock.now + ServerCheck.pageTime > end {
                gathered.pages = pages
                return
            }
            guard let next, next != revision else {
                throw .noAnswer("Apple's history goes on without a new revision; ask again later.", code: nil)
            }
            revision = next
        }
    }

    private mutating func reply(to call: ServerCall, of endpoint: ServerEndpoint) async -> ServerReply {
        let (reply, result, calls) = await check.caller.call(
            call, of: request.key, in: gathered.environment, until: end)
        self.calls += calls
        (last, lastEndpoint) = (result, endpoint)
        return reply
    }

    private func document(of reply: ServerReply) throws(ServerVerdict) -> JSONDocument {
        switch reply {
        case .answered(let document): return document
        case .accepted: throw .noAnswer(ServerReply.noObject, code: nil)
        case .unauthorized: throw .keyRefused
        case .failed(let sentence): throw .noAnswer(sentence, code: nil)
        case .error(let code, let meaning): throw ServerVerdict(code, meaning)
        }
    }
}

/// Every verdict but `answered` ends the reading of an environment.
extension ServerVerdict: Error {
    /// The verdict on an answer that is not about the asked transaction.
    fileprivate static let lacksAsked = ServerVerdict.otherSubject(
        "Apple's answer does not hold the transaction that was asked about.")

    /// The verdict on an answer of another form than Apple's.
    static let unreadable = ServerVerdict.noAnswer("Apple's answer cannot be read; ask again later.", code: nil)

    /// Whether Apple does not know the transaction, or cannot be asked about it.
    fileprivate var isAboutTransaction: Bool {
        switch self {
        case .unknownTransaction, .idRefused: true
        case .answered, .otherSubject, .keyRefused, .appRefused, .unverified, .ourFault, .noAnswer: false
        }
    }

    init(_ code: Int, _ meaning: ServerErrorMeaning) {
        switch meaning {
        case .unknownHere, .accountGone: self = .unknownTransaction(code: code)
        case .temporary: self = .noAnswer("Apple has a temporary problem (\(code)).", code: code)
        case .tooMany: self = .noAnswer("Apple asks for fewer requests (\(code)).", code: code)
        case .appRefused: self = .appRefused(code: code)
        case .placeLost, .ourFault: self = .ourFault(code: code)
        case .idRefused: self = .idRefused(code: code)
        }
    }
}

/// What the Server API said about a transaction, as far as a check is concerned.
package enum ServerVerdict: Sendable, Hashable {
    /// Verified texts of the app and the environment that were asked about.
    case answered(ServerContents)
    /// Apple knows no such transaction, or not its customer any more. Code of the last answer.
    case unknownTransaction(code: Int)
    /// The id can never be asked about.
    case idRefused(code: Int)
    /// The answer is about another app or environment, or lacks the id; one sentence.
    case otherSubject(String)
    /// Apple does not accept the key, or has never released the app there.
    case keyRefused
    /// Apple does not know the app.
    case appRefused(code: Int)
    /// A text cannot be verified; one sentence.
    case unverified(String)
    /// Apple finds a fault in the request.
    case ourFault(code: Int)
    /// Apple has a temporary problem, or gave no answer; one sentence.
    case noAnswer(String, code: Int?)

    /// What the verified texts hold.
    package var contents: ServerContents? { if case .answered(let contents) = self { contents } else { nil } }

    /// Whether nothing was learnt, and by no fault of the transaction or the app's key.
    package var isFailure: Bool {
        switch self {
        case .noAnswer, .unverified, .ourFault: true
        case .answered, .unknownTransaction, .idRefused, .otherSubject, .keyRefused, .appRefused: false
        }
    }

    /// What is wrong with the way Apple is asked, or with what it signs; an operator has to know. Nil for nothing.
    package var fault: String? {
        switch self {
        case .keyRefused, .appRefused, .unverified, .ourFault: sentence
        case .answered, .unknownTransaction, .idRefused, .otherSubject, .noAnswer: nil
        }
    }

    /// Apple's code, if it gave one.
    package var code: Int? {
        switch self {
        case .answered: 0
        case .unknownTransaction(let code), .idRefused(let code), .appRefused(let code), .ourFault(let code): code
        case .noAnswer(_, let code): code
        case .otherSubject, .keyRefused, .unverified: nil
        }
    }

    /// The verdict as one sentence; nil where Apple answered. Never contains a secret, an id or a host name.
    package var sentence: String? {
        switch self {
        case .answered: nil
        case .unknownTransaction(let code): "Apple knows no such transaction (\(code))."
        case .idRefused(let code): "Apple does not take the id of the transaction (\(code))."
        case .otherSubject(let sentence), .unverified(let sentence), .noAnswer(let sentence, _): sentence
        case .keyRefused:
            "Apple does not accept the app's server key (401); check key, issuer id and bundle id, and store the key "
                + "again with `perennial app server-key`."
        case .appRefused(let code): "Apple does not know the app (\(code)); check its bundle id and its server key."
        case .ourFault(let code): "Apple found a fault in the request (\(code)); please report this as a bug."
        }
    }
}

/// The app and environment that were asked about, with which what Apple answers is compared.
struct AskedSubject: Sendable {
    let bundleID: String
    let environment: StoreEnvironment
    /// Apple's number of the app; nil: not compared. Only production names it.
    let appleAppID: Int64?

    /// Returns a sentence where a subject is named and is another one.
    func difference(_ bundleID: String?, _ environment: String?, _ appleAppID: Int64? = nil) -> String? {
        if let bundleID, bundleID != self.bundleID {
            return "The app asked about is \(self.bundleID), the answer is for another one."
        }
        if let environment, environment != self.environment.rawValue {
            return "The environment asked is \(self.environment.rawValue), the answer is from another one."
        }
        if let appleAppID, let expected = self.appleAppID, appleAppID != expected, self.environment == .production {
            return "Apple's number of the app is \(appleAppID), not \(expected); correct it with `perennial app set`."
        }
        return nil
    }
}
