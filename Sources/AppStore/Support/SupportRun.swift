import Foundation

/// One support call, with all its pages, under one deadline.
struct SupportRun: Sendable {
    let options: ServerAPIOptions
    let caller: ServerCaller
    let verifier: SignedTextVerifier
    let request: SupportRequest

    /// A call that ended the run.
    private struct Ended: Error {
        let answer: SupportAnswer

        init(_ outcome: SupportAnswer.Outcome, retryAfterSeconds: Double? = nil) {
            answer = SupportAnswer(outcome, retryAfterSeconds: retryAfterSeconds)
        }
    }

    func run() async -> SupportAnswer {
        let end = ContinuousClock.now + options.deadline
        do throws(Ended) {
            return SupportAnswer(.done(try await contents(until: end)))
        } catch {
            return error.answer
        }
    }

    private func contents(until end: ContinuousClock.Instant) async throws(Ended) -> SupportContents {
        let question = request.question
        switch question {
        case .testNotification:
            let answer = try await document(of: question.call(), until: end)
            guard let token = answer.text("testNotificationToken") else { throw Self.unreadable }
            return .test(token: token)
        case .testStatus: return .testStatus(try await test(in: document(of: question.call(), until: end)))
        case .transaction(let id):
            let answer = try await document(of: question.call(), until: end)
            guard let text = answer.text("signedTransactionInfo") else { throw Self.unreadable }
            let found = try await transaction(in: text)
            guard found.transactionID == id else {
                throw Ended(.failed("Apple answered about another transaction than the one asked about.", code: nil))
            }
            return .transactions([found], goesOn: false)
        case .history, .refunds: return try await pages(until: end)
        case .extensionStatus: return .extensionStatus(try await status(in: document(of: question.call(), until: end)))
        case .change(let change, _): return try await contents(of: change, until: end)
        }
    }

    private func contents(
        of change: SupportChange, until end: ContinuousClock.Instant
    ) async throws(Ended) -> SupportContents {
        guard let answer = try await answer(to: request.question.call(), until: end) else { return .accepted }
        switch change {
        case .extend:
            guard answer.text("success") == "true" else {
                throw Ended(.refused("Apple did not extend the subscription, and gave no reason.", code: nil))
            }
            return .extended(until: answer.integer("effectiveDate"))
        case .extendAll, .consumption, .accountToken: return .accepted
        }
    }

    /// Reads a history from its start, at most `pagesMax` pages.
    private func pages(until end: ContinuousClock.Instant) async throws(Ended) -> SupportContents {
        var (found, revision): ([SignedTransaction], String?) = ([], nil)
        for page in 1... {
            let answer = try await document(of: request.question.call(from: revision), until: end)
            try require(answer.text("bundleId"), answer.text("environment"), isWhole: false)
            for text in answer.texts("signedTransactions") { found.append(try await transaction(in: text)) }
            let next = answer.text("revision")
            guard answer.text("hasMore") == "true" else { return .transactions(found, goesOn: false) }
            let isOver = page == options.pagesMax || ContinuousClock.now + ServerCheck.pageTime > end
            guard !isOver, let next, next != revision else { return .transactions(found, goesOn: true) }
            revision = next
        }
        return .transactions(found, goesOn: true)
    }

    private func test(in answer: SupportDocument) async throws(Ended) -> TestNotification {
        guard let text = answer.text("signedPayload") else { throw Self.unreadable }
        let payload = try await payload(of: text)
        guard let said = SignedNotification(payload: payload, transaction: nil, renewal: nil) else {
            throw Self.unreadable
        }
        try require(said.bundleID, said.environment, said.appleAppID.flatMap { Int64($0) })
        return TestNotification(uuid: said.uuid, attempts: answer.attempts)
    }

    private func status(in answer: SupportDocument) throws(Ended) -> ExtensionStatus {
        guard let complete = answer.text("complete") else { throw Self.unreadable }
        return ExtensionStatus(
            isComplete: complete == "true", completedAt: answer.integer("completeDate"),
            succeeded: answer.integer("succeededCount") ?? 0, failed: answer.integer("failedCount") ?? 0)
    }

    private func transaction(in text: String) async throws(Ended) -> SignedTransaction {
        guard let found = SignedTransaction(payload: try await payload(of: text)) else { throw Self.unreadable }
        try require(found.bundleID, found.environment)
        return found
    }

    private func payload(of text: String) async throws(Ended) -> [UInt8] {
        do throws(SignedTextRefusal) {
            return try await verifier.verify(Array(text.utf8)).payload
        } catch {
            throw Ended(.failed("A text in Apple's answer cannot be verified. \(error.sentence)", code: nil))
        }
    }

    /// Throws unless a text is about the app and the environment that were asked; a `isWhole` one says both.
    private func require(
        _ bundleID: String?, _ environment: String?, _ appleAppID: Int64? = nil, isWhole: Bool = true
    ) throws(Ended) {
        let asked = AskedSubject(
            bundleID: request.key.bundleID, environment: request.environment, appleAppID: request.appleAppID)
        if let sentence = asked.difference(bundleID, environment, appleAppID) {
            throw Ended(.failed(sentence, code: nil))
        }
        guard !isWhole || bundleID != nil && environment != nil else {
            throw Ended(.failed("A text in Apple's answer does not name its app and environment.", code: nil))
        }
    }

    private static let unreadable = Ended(.failed("Apple's answer cannot be read; ask again later.", code: nil))

    private func document(
        of call: ServerCall, until end: ContinuousClock.Instant
    ) async throws(Ended) -> SupportDocument {
        guard let answer = try await answer(to: call, until: end) else {
            throw Ended(.failed(ServerReply.noObject, code: nil))
        }
        return answer
    }

    /// Makes a call in its turn; returns nil where Apple took it without a word.
    private func answer(
        to call: ServerCall, until end: ContinuousClock.Instant
    ) async throws(Ended) -> SupportDocument? {
        guard await ServerCaller.awaits(request.turn, until: end) else {
            throw Ended(.refused("\(ServerCaller.noTurn) Nothing was sent; try again later.", code: nil))
        }
        let (reply, result, _) = await caller.call(call, of: request.key, in: request.environment, until: end)
        switch reply {
        case .answered(let document): return SupportDocument(document)
        case .accepted: return nil
        case .unauthorized: throw Ended(.refused(ServerVerdict.keyRefused.sentence ?? "", code: nil))
        case .failed(let sentence, _): throw Ended(.failed(sentence, code: nil))
        case .error(let code, let meaning):
            let sentence = SupportRefusal.sentence(code, in: request.environment)
            switch meaning {
            case .temporary: throw Ended(.failed(sentence, code: code))
            case .tooMany:
                throw Ended(
                    .refused(sentence, code: code),
                    retryAfterSeconds: RetryAfter.seconds(in: result.headers, now: Date()))
            case .unknownHere, .accountGone, .appRefused, .placeLost, .idRefused, .ourFault:
                throw Ended(.refused(sentence, code: code))
            }
        }
    }
}

/// The members of Apple's answer to a support call.
private struct SupportDocument {
    private let document: JSONDocument
    private let members: [String: Int]

    init(_ document: JSONDocument) {
        self.document = document
        members = document.members(JSONDocument.root)
    }

    func text(_ name: String) -> String? { members[name].flatMap(document.scalar) }

    func integer(_ name: String) -> Int64? { members[name].flatMap(document.digits) }

    func texts(_ name: String) -> [String] {
        (members[name].map(document.elements) ?? []).compactMap(document.scalar)
    }

    /// The attempts to send a test notification.
    var attempts: [TestNotification.Attempt] {
        (members["sendAttempts"].map(document.elements) ?? []).compactMap { index in
            let attempt = document.members(index)
            guard let at = attempt["attemptDate"].flatMap(document.digits),
                let result = attempt["sendAttemptResult"].flatMap(document.scalar)
            else { return nil }
            return TestNotification.Attempt(at: at, result: result)
        }
    }
}
