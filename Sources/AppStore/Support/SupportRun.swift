import JSON
package import Subscriptions

/// One support call, with all its pages, under one deadline.
struct SupportRun: Sendable {
    let caller: ServerCaller
    let verifier: SignedTextVerifier
    let request: SupportRequest
    let end: ContinuousClock.Instant

    func run() async -> SupportAnswer {
        do throws(SupportAnswer) {
            return SupportAnswer(outcome: .done(try await contents()))
        } catch {
            return error
        }
    }

    private func contents() async throws(SupportAnswer) -> SupportContents {
        let question = request.question
        switch question {
        case .testNotification:
            let answer = try await document(of: question.call())
            guard let token = answer.text("testNotificationToken") else { throw .unreadable }
            return .test(token: token)
        case .testStatus: return .testStatus(try await test(in: document(of: question.call())))
        case .transaction(let id):
            let answer = try await document(of: question.call())
            guard let text = answer.text("signedTransactionInfo"), let found = try await transaction(in: text) else {
                throw .unreadable
            }
            guard found.row.transactionID.text == id else {
                throw .failed("Apple answered about another transaction than the one asked about.")
            }
            return .transactions([found], goesOn: false)
        case .history, .refunds: return try await pages()
        case .extensionStatus: return .extensionStatus(try await status(in: document(of: question.call())))
        case .change(let change, _): return try await contents(of: change)
        }
    }

    private func contents(of change: SupportChange) async throws(SupportAnswer) -> SupportContents {
        guard let answer = try await answer(to: request.question.call()) else { return .accepted }
        switch change {
        case .extend:
            guard answer.text("success") == "true" else {
                throw .refused("Apple did not extend the subscription, and gave no reason.")
            }
            return .extended(until: answer.digits("effectiveDate"))
        case .extendAll, .consumption, .accountToken: return .accepted
        }
    }

    /// Reads a history from its start, at most `pagesMax` pages.
    private func pages() async throws(SupportAnswer) -> SupportContents {
        var (found, revision): ([SignedTransaction], String?) = ([], nil)
        for page in 1... {
            let answer = try await document(of: request.question.call(from: revision))
            try require(answer.text("bundleId"), answer.text("environment"), isWhole: false)
            for text in answer.texts("signedTransactions") {
                if let transaction = try await transaction(in: text) { found.append(transaction) }
            }
            let next = answer.text("revision")
            guard answer.text("hasMore") == "true" else { return .transactions(found, goesOn: false) }
            let isOver = page == caller.options.pagesMax || ContinuousClock.now + ServerCheck.pageTime > end
            guard !isOver, let next, next != revision else { return .transactions(found, goesOn: true) }
            revision = next
        }
        return .transactions(found, goesOn: true)
    }

    private func test(in answer: JSONObject) async throws(SupportAnswer) -> TestNotification {
        guard let text = answer.text("signedPayload"),
            let said = SignedNotification(payload: try await payload(of: text), transaction: nil, renewal: nil)
        else { throw .unreadable }
        try require(said.bundleID, said.environment, said.appleAppID.flatMap { Int64($0) })
        let attempts = answer.objects("sendAttempts").compactMap { attempt in
            attempt.digits("attemptDate").flatMap { at in
                attempt.text("sendAttemptResult").map { TestNotification.Attempt(at: at, result: $0) }
            }
        }
        return TestNotification(uuid: said.uuid, attempts: attempts)
    }

    private func status(in answer: JSONObject) throws(SupportAnswer) -> ExtensionStatus {
        guard let complete = answer.text("complete") else { throw .unreadable }
        return ExtensionStatus(
            isComplete: complete == "true", completedAt: answer.digits("completeDate"),
            succeeded: answer.digits("succeededCount") ?? 0, failed: answer.digits("failedCount") ?? 0)
    }

    /// Returns a transaction; nil where its row is ignored.
    private func transaction(in text: String) async throws(SupportAnswer) -> SignedTransaction? {
        let payload = try await payload(of: text)
        guard let subject = SignedSubject(payload: payload) else { throw .unreadable }
        try require(subject.bundleID, subject.environment)
        return SignedTransaction(payload: payload)
    }

    private func payload(of text: String) async throws(SupportAnswer) -> [UInt8] {
        do throws(SignedTextRefusal) {
            return try await verifier.verify(Array(text.utf8)).payload
        } catch {
            throw .failed("A text in Apple's answer cannot be verified. \(error.sentence)")
        }
    }

    /// Throws unless a text is about the app and the environment that were asked; a `isWhole` one says both.
    private func require(
        _ bundleID: String?, _ environment: String?, _ appleAppID: Int64? = nil, isWhole: Bool = true
    ) throws(SupportAnswer) {
        let asked = AskedSubject(
            bundleID: request.key.bundleID, environment: request.environment, appleAppID: request.appleAppID)
        if let sentence = asked.difference(bundleID, environment, appleAppID) {
            throw .failed(sentence)
        }
        guard !isWhole || bundleID != nil && environment != nil else {
            throw .failed("A text in Apple's answer does not name its app and environment.")
        }
    }

    private func document(of call: ServerCall) async throws(SupportAnswer) -> JSONObject {
        guard let answer = try await answer(to: call) else { throw .failed(ServerReply.noObject) }
        return answer
    }

    /// Makes a call in its turn; returns nil where Apple took it without a word.
    private func answer(to call: ServerCall) async throws(SupportAnswer) -> JSONObject? {
        guard await ServerCaller.awaits(request.turn, until: end) else {
            throw .refused("\(ServerCaller.noTurn) Nothing was sent; try again later.")
        }
        let (reply, result, _) = await caller.call(call, of: request.key, in: request.environment, until: end)
        switch reply {
        case .answered(let document): return JSONObject(document)
        case .accepted: return nil
        case .unauthorized: throw .refused(ServerVerdict.keyRefused.sentence ?? "")
        case .failed(let sentence): throw .failed(sentence)
        case .error(let code, let meaning):
            let sentence = "\(SupportRefusal.reason(code, in: request.environment)) (\(code))"
            switch meaning {
            case .temporary: throw .failed(sentence, code: code)
            case .tooMany:
                throw SupportAnswer(
                    outcome: .refused(sentence, code: code), retryAfterSeconds: result.retryAfterSeconds)
            case .unknownHere, .accountGone, .appRefused, .placeLost, .idRefused, .ourFault:
                throw .refused(sentence, code: code)
            }
        }
    }
}

extension SupportAnswer {
    fileprivate static let unreadable = failed("Apple's answer cannot be read; ask again later.")

    fileprivate static func failed(_ sentence: String, code: Int? = nil) -> SupportAnswer {
        SupportAnswer(outcome: .failed(sentence, code: code))
    }

    fileprivate static func refused(_ sentence: String, code: Int? = nil) -> SupportAnswer {
        SupportAnswer(outcome: .refused(sentence, code: code))
    }
}

/// A support call to make.
package struct SupportRequest: Sendable {
    package var key: ServerKey
    /// Apple's number of the app; a text of production that names another one is not shown.
    package var appleAppID: Int64?
    package var environment: StoreEnvironment
    package var question: SupportQuestion
    /// Waits for its turn: returns nil when the call may be made, else the seconds to wait before another question.
    package var turn: @Sendable () async -> Double?

    /// Creates a request; the app's budget is `turn`.
    package init(
        key: ServerKey, appleAppID: Int64?, environment: StoreEnvironment, question: SupportQuestion,
        turn: @escaping @Sendable () async -> Double?
    ) {
        (self.key, self.appleAppID, self.environment) = (key, appleAppID, environment)
        (self.question, self.turn) = (question, turn)
    }
}

/// What became of a support call; thrown where a call ends all of it.
package struct SupportAnswer: Error, Hashable {
    package enum Outcome: Sendable, Hashable {
        /// Apple answered, or did it; texts are verified.
        case done(SupportContents)
        /// Apple did not do it, for this reason; its code where it gave one.
        case refused(String, code: Int?)
        /// There is no answer that can be used, for this reason: Apple may have done it.
        case failed(String, code: Int?)
    }

    package let outcome: Outcome
    /// How long Apple asks to wait, in seconds; nil where it does not.
    package var retryAfterSeconds: Double?
}

/// What Apple answered to a support call.
package enum SupportContents: Sendable, Hashable {
    /// Verified transactions in Apple's order, and whether there are more that were not read.
    case transactions([SignedTransaction], goesOn: Bool)
    /// A test notification is on its way; by this token its fate is asked about.
    case test(token: String)
    /// What became of a test notification.
    case testStatus(TestNotification)
    /// A subscription was extended: when it ends now, in milliseconds since 1970.
    case extended(until: Int64?)
    /// How far the extension of all subscriptions is.
    case extensionStatus(ExtensionStatus)
    /// Apple took it.
    case accepted
}

/// A test notification of Apple's, verified.
package struct TestNotification: Sendable, Hashable {
    /// An attempt to deliver it.
    package struct Attempt: Sendable, Hashable {
        /// When, in milliseconds since 1970.
        package let at: Int64
        /// Apple's word for what came of it, such as `SUCCESS` or `TIMED_OUT`.
        package let result: String
    }

    package let uuid: String
    package let attempts: [Attempt]
}

/// How far an extension of all subscriptions of a product is.
package struct ExtensionStatus: Sendable, Hashable {
    /// Whether Apple has tried all of them.
    package let isComplete: Bool
    /// When it was complete, in milliseconds since 1970.
    package let completedAt: Int64?
    package let succeeded: Int64
    package let failed: Int64
}

/// Why Apple refuses a support call, by its code (Apple: "App Store Server API", error codes).
enum SupportRefusal {
    static func reason(_ code: Int, in environment: StoreEnvironment) -> String {
        switch code {
        case 4_000_006, 4_000_008: "Apple does not take this id of a transaction"
        case 4_000_020: "This is no token of a test notification"
        case 4_000_023: "The app has no subscription product of this id"
        case 4_000_028: "Apple does not know one of the countries; it names them by three letters, such as USA"
        case 4_000_034...4_000_043: "Apple does not take this about the consumption"
        case 4_000_047: "Apple takes nothing about the consumption of this kind of product"
        case 4_000_048: "This is the id of an app transaction, which names no purchase"
        case 4_000_033, 4_000_183: "An account token is a UUID"
        case 4_000_185: "The transaction is shared by Family Sharing, and cannot have a token of its own"
        case 4_000_187: "This is not the id of an original transaction; give the id of the subscription's first one"
        case 4_030_004: "The subscription cannot be extended: it does not run, is in a trial or in a billing retry"
        case 4_030_005: "The subscription has been extended twice within a year, which is the most"
        case 4_030_007: "A subscription that is shared by Family Sharing cannot be extended; extend its buyer's"
        case 4_040_001, 4_040_002: "Apple does not know the customer's account any more"
        case 4_040_003, 4_040_004, 4_000_002: "Apple does not know the app; check its bundle id and its server key"
        case 4_040_005, 4_040_006, 4_040_010:
            "Apple knows no such transaction of the app in \(environment.rawValue); is it one of the other environment?"
        case 4_040_007:
            "App Store Connect has no address for notifications of \(environment.rawValue); enter it there, under App "
                + "Information"
        case 4_040_008: "Apple does not know this test notification, or not yet"
        case 4_040_009: "Apple knows no extension of this product by this request"
        case 4_290_000: "Apple asks for fewer calls; try again later"
        case 5_000_000..<6_000_000: "Apple has a temporary problem; try again later"
        default: "Apple refuses the call"
        }
    }
}
