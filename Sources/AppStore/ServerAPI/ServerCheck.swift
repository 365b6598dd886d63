package import AsyncHTTPClient
import Foundation
import JSON
import Subscriptions

extension ServerAPIClient {
    /// Returns a client of the real App Store Server API over HTTP.
    ///
    /// - Parameters:
    /// - options: addresses and limits.
    /// - client: one of `AppStoreOptions.withClient`.
    /// - verifier: verifies every signed text of an answer.
    package static func live(
        _ options: ServerAPIOptions, client: HTTPClient, verifier: SignedTextVerifier
    ) -> ServerAPIClient {
        let caller = ServerCaller(
            options: options, http: HTTPCall(client: client, responseBytesMax: options.responseBytesMax),
            tokens: ServerTokens())
        return ServerAPIClient { request in
            await SupportRun(options: options, caller: caller, verifier: verifier, request: request).run()
        } read: { request in
            await ServerCheck(options: options, caller: caller, verifier: verifier, request: request).run()
        }
    }
}

/// One check: some calls under one deadline.
struct ServerCheck: Sendable {
    /// The time that a further page needs at least.
    static let pageTime = Duration.seconds(3)

    let options: ServerAPIOptions
    let caller: ServerCaller
    let verifier: SignedTextVerifier
    let request: ServerRequest

    /// What one environment said.
    private struct Reading {
        var verdict: ServerVerdict
        var json: [UInt8] = []
        var isUnauthorized = false
        var last = CallResult()
        var lastEndpoint = ServerEndpoint.statuses
        var calls = 0
    }

    /// A call that ended the reading of an environment.
    private struct Ended: Error {
        var verdict: ServerVerdict
        var isUnauthorized = false
    }

    func run() async -> AppStoreAnswer {
        let start = ContinuousClock.now
        let end = start + options.deadline
        var environment = request.sandboxAllowed ? request.askFirst : .production
        var reading = await read(environment, until: end)
        if environment == .production, mayBeInSandbox(reading), ContinuousClock.now < end {
            environment = .sandbox
            let calls = reading.calls
            reading = await read(environment, until: end)
            reading.calls += calls
        }
        return AppStoreAnswer(
            environment: environment, server: reading.verdict, httpStatus: reading.last.httpStatus, body: reading.json,
            failureDetail: reading.last.failureDetail, calls: reading.calls,
            elapsedMilliseconds: start.duration(to: .now).wholeMilliseconds,
            correlationID: reading.last.correlationID,
            retryAfterSeconds: reading.last.httpStatus == 200
                ? nil : RetryAfter.seconds(in: reading.last.headers, now: Date()),
            lastEndpoint: reading.lastEndpoint)
    }

    /// Whether the sandbox may know what production does not. Apple refuses the key of an app that was never released
    /// in production.
    private func mayBeInSandbox(_ reading: Reading) -> Bool {
        guard request.isFirstSight, request.sandboxAllowed else { return false }
        if reading.isUnauthorized { return !caller.tokens.isAccepted(request.key, in: .production) }
        guard case .unknownTransaction(let code) = reading.verdict else { return false }
        return ServerErrorMeaning(code) == .unknownHere
    }

    private func read(_ environment: StoreEnvironment, until end: ContinuousClock.Instant) async -> Reading {
        var reading = Reading(verdict: .noAnswer(CallFailure.noTimeLeft, code: nil))
        do throws(Ended) {
            var gathered = try await gather(in: environment, until: end, &reading)
            var contents = try await verified(gathered.json)
            if request.isFirstSight, !contents.listsAsked {
                contents = try await naming(contents, &gathered, until: end, &reading)
            }
            reading.verdict = .answered(contents)
            reading.json = gathered.json
        } catch {
            reading.verdict = error.verdict
            reading.isUnauthorized = error.isUnauthorized
        }
        return reading
    }

    /// Returns what a JSON text holds, once all of it is verified.
    private func verified(_ json: [UInt8]) async throws(Ended) -> ServerContents {
        guard let contents = ServerContents(reading: json) else {
            throw Ended(verdict: .noAnswer("Apple's answer cannot be read; ask again later.", code: nil))
        }
        if let fault = await contents.fault(of: request, by: verifier) { throw Ended(verdict: fault) }
        return contents
    }

    /// Returns the contents with a text that names the asked transaction, whose id they lack: one purchase has several ids,
    /// by restores and on other devices. Refuses them where they lack its purchase too.
    private func naming(
        _ contents: ServerContents, _ gathered: inout GatheredAnswers, until end: ContinuousClock.Instant,
        _ reading: inout Reading
    ) async throws(Ended) -> ServerContents {
        // A part of a long history need not hold the purchase.
        if contents.goesOn, request.signedText == nil { return contents }
        gathered.named = try await named(in: gathered.environment, until: end, &reading)
        guard let named = ServerContents(reading: gathered.json) else {
            throw Ended(verdict: .noAnswer("Apple's answer cannot be read; ask again later.", code: nil))
        }
        if let fault = await named.faultInName(of: request, by: verifier) { throw Ended(verdict: fault) }
        guard named.listsNamed || named.goesOn else { throw Ended(verdict: .lacksAsked) }
        return named
    }

    /// Returns what names the asked transaction: the text that the device sent, else Apple's answer about it.
    private func named(
        in environment: StoreEnvironment, until end: ContinuousClock.Instant, _ reading: inout Reading
    ) async throws(Ended) -> [UInt8] {
        if let text = request.signedText {
            return JSONText { $0.member("signedTransactionInfo", String(decoding: text, as: UTF8.self)) }.bytes
        }
        do throws(Ended) {
            try await reserve(.transaction, in: environment, until: end)
            let call = ServerCall.transaction(request.transactionID)
            return try document(of: await reply(to: call, of: .transaction, in: environment, until: end, &reading))
                .bytes
        } catch {
            guard error.verdict.isAboutTransaction else { throw error }
            throw Ended(verdict: .lacksAsked)
        }
    }

    /// Reads the statuses, then the history: what happens meanwhile, the history shows. Returns both.
    ///
    /// Both calls are reserved before the first one, so that no call is made whose answer could not count.
    private func gather(
        in environment: StoreEnvironment, until end: ContinuousClock.Instant, _ reading: inout Reading
    ) async throws(Ended) -> GatheredAnswers {
        for endpoint in [ServerEndpoint.statuses, .history] { try await reserve(endpoint, in: environment, until: end) }
        var gathered = GatheredAnswers(transactionID: request.transactionID, environment: environment)
        gathered.from = request.revision
        try await readStatuses(into: &gathered, until: end, &reading)
        try await readHistory(into: &gathered, until: end, &reading)
        return gathered
    }

    private func reserve(
        _ endpoint: ServerEndpoint, in environment: StoreEnvironment, until end: ContinuousClock.Instant
    ) async throws(Ended) {
        guard await ServerCaller.awaits({ await request.turn(environment, endpoint) }, until: end) else {
            throw Ended(verdict: .noAnswer(ServerCaller.noTurn, code: nil))
        }
    }

    /// Reads the statuses. A customer without subscriptions has a history alone.
    private func readStatuses(
        into gathered: inout GatheredAnswers, until end: ContinuousClock.Instant, _ reading: inout Reading
    ) async throws(Ended) {
        let call = ServerCall.statuses(of: request.transactionID)
        let reply = await reply(to: call, of: .statuses, in: gathered.environment, until: end, &reading)
        if case .error(_, .unknownHere) = reply { return }
        gathered.statuses = try document(of: reply).bytes
    }

    /// Reads the history from a place on, at most `pagesMax` pages; the call of the first one is reserved.
    ///
    /// A place that Apple does not know any more is dropped once: the history is read from its start.
    private func readHistory(
        into gathered: inout GatheredAnswers, until end: ContinuousClock.Instant, _ reading: inout Reading
    ) async throws(Ended) {
        var (pages, revision): ([[UInt8]], String?) = ([], gathered.from)
        var (mayRestart, isReserved) = (true, true)
        while true {
            if !isReserved { try await reserve(.history, in: gathered.environment, until: end) }
            isReserved = false
            let call = ServerCall.history(of: request.transactionID, from: revision)
            let reply = await reply(to: call, of: .history, in: gathered.environment, until: end, &reading)
            if case .error(_, .placeLost) = reply, mayRestart {
                (pages, revision, mayRestart) = ([], nil, false)
                gathered.from = nil
                continue
            }
            let page = try document(of: reply)
            let members = JSONObject(page)
            pages.append(page.bytes)
            let next = members?.text("revision")
            let hasMore = members?.text("hasMore") == "true"
            if !hasMore || pages.count == options.pagesMax || ContinuousClock.now + Self.pageTime > end {
                gathered.pages = pages
                return
            }
            guard let next, next != revision else {
                throw Ended(
                    verdict: .noAnswer("Apple's history goes on without a new revision; ask again later.", code: nil))
            }
            revision = next
        }
    }

    private func reply(
        to call: ServerCall, of endpoint: ServerEndpoint, in environment: StoreEnvironment,
        until end: ContinuousClock.Instant, _ reading: inout Reading
    ) async -> ServerReply {
        let (reply, result, calls) = await caller.call(call, of: request.key, in: environment, until: end)
        reading.calls += calls
        (reading.last, reading.lastEndpoint) = (result, endpoint)
        return reply
    }

    private func document(of reply: ServerReply) throws(Ended) -> JSONDocument {
        switch reply {
        case .answered(let document): return document
        case .accepted: throw Ended(verdict: .noAnswer(ServerReply.noObject, code: nil))
        case .unauthorized: throw Ended(verdict: .keyRefused, isUnauthorized: true)
        case .failed(let sentence, _): throw Ended(verdict: .noAnswer(sentence, code: nil))
        case .error(let code, let meaning): throw Ended(verdict: ServerVerdict(code, meaning))
        }
    }
}

extension ServerVerdict {
    /// The verdict on an answer that is not about the asked transaction.
    fileprivate static let lacksAsked = ServerVerdict.otherSubject(
        "Apple's answer does not hold the transaction that was asked about.")

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
    package var contents: ServerContents? {
        switch self {
        case .answered(let contents): contents
        case .unknownTransaction, .idRefused, .otherSubject, .keyRefused, .appRefused, .unverified, .ourFault,
            .noAnswer:
            nil
        }
    }

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
