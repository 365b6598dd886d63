import AppStore
import Foundation
import Logging
package import Subscriptions

extension Tracker {
    /// Asks Apple about one claimed receipt and settles the answer. All other code prepares or repeats this step; the
    /// worker's loop runs the same stages for many receipts at a time. Throws `busy` when Apple has not answered at
    /// `end`; the receipt is then left to the workers.
    func check(_ claim: Claim, until end: ContinuousClock.Instant? = nil) async throws -> SettledBatch {
        let asked = try await ask(claim, until: end)  // an outage is an answer too
        let checked = Checked(claim, asked)  // interpreted only where it is not the last answer again
        return try await settleAndFollowUp([checked])  // locks, reconcile (pure, no clock), one commit
    }

    /// Asks Apple about a claimed receipt. Never throws: an outage is an answer too.
    func ask(_ claim: Claim) async -> AppStoreAnswer {
        metrics.asks()
        let asked = await answer(about: claim)
        metrics.answered(asked)
        return asked
    }

    /// Settles answers together: their facts, events and schedules change in one commit. Then it counts them and does
    /// what follows from them.
    func settleAndFollowUp(_ answers: [Checked]) async throws -> SettledBatch {
        let begin = ContinuousClock.now
        let chains = try await ledger.chainNumbers(of: answers.reduce(into: []) { $0.formUnion($1.signedHeaders) })
        var batch = try await ledger.settlements.settle(answers, chains: chains)
        batch.noteUnasked(of: answers)
        if !batch.settled.isEmpty { feedBell.ring() }
        noteConditions(in: answers, unwritten: batch.failures)
        await noteSecrets(answers)
        await noteUnread(in: answers)
        await compareChannels(of: answers)
        let (counts, elapsed) = (batch.counts(of: answers.count), ContinuousClock.now - begin)
        tally.count(answers)
        counting.add(counts)
        metrics.settled(answers, batch, elapsed: elapsed)
        logger.debug(
            "settled", metadata: counts.metadata.merging(["elapsed_ms": "\(Int(elapsed.seconds * 1_000))"]) { $1 })
        return batch
    }

    private func ask(_ claim: Claim, until end: ContinuousClock.Instant?) async throws -> AppStoreAnswer {
        guard let end else { return await ask(claim) }
        if let asked = await within(end - .now, { await ask(claim) }) { return asked }
        try await ledger.claims.release([claim])
        throw LedgerError(.busy, "Apple has not answered in time; a worker will ask again.")
    }

    /// Asks verifyReceipt or the Server API about a claimed receipt, by the app's verifier and what the device sent.
    /// Where both are asked, the answer that counts has what the other one adds.
    private func answer(about claim: Claim) async -> AppStoreAnswer {
        let question = ServerQuestion(about: claim)
        guard question.vouchesFirst || !question.asksServer else { return await serverAnswer(about: claim, question) }
        var answer = await receiptAnswer(about: claim)
        guard question.asksServer, question.compares || !answer.isVerdict else { return answer }
        var other = await serverAnswer(about: claim, question)
        if other.isHeldBack { return answer }
        guard answer.isVerdict else {
            // While verifyReceipt cannot answer, the id in the receipt counts as a pointer.
            if answer.refusesSecret { other.secretRefusedIn = answer.environment }
            return other
        }
        answer.compared = other.server
        return answer
    }

    private func receiptAnswer(about claim: Claim) async -> AppStoreAnswer {
        let environment = claim.environment ?? .production
        guard claim.secretPause == nil else {
            return .heldBack(
                from: environment,
                because: "Apple refuses the app's shared secret (21004); receipts wait until it accepts it.")
        }
        do {
            let secrets = try ledger.apps.secrets(of: claim.app)
            conditions.clear(.sealedSecret(claim.app.bundleID))
            return await appStore.verify(
                AppStoreRequest(
                    receipt: Data(claim.receipt).base64EncodedString(), secret: secrets.current,
                    previousSecret: secrets.previous, askFirst: environment, sandboxAllowed: claim.app.sandboxAllowed))
        } catch {
            conditions.raise(.sealedSecret(claim.app.bundleID), by: "\(error)")
            return .notAsked(in: environment, because: "The app's shared secret cannot be read here; the log says why.")
        }
    }
}

extension Claim {
    /// The pause of the environment in which Apple would be asked about the receipt; nil where it accepts the secret.
    var secretPause: App.Pause? {
        guard !app.secretPauses.isEmpty else { return nil }
        let own = environment ?? LocalReading(of: receipt).receipt?.store
        return app.secretPauses[own ?? .production]
    }
}

extension AppStoreAnswer {
    /// No answer: Apple refuses the app's secret or key, so that it is not asked.
    static func heldBack(from environment: StoreEnvironment, because reason: String) -> AppStoreAnswer {
        var answer = AppStoreAnswer.notAsked(in: environment, because: reason)
        answer.isHeldBack = true
        return answer
    }

    /// No answer, because Apple was not asked.
    fileprivate static func notAsked(in environment: StoreEnvironment, because reason: String) -> AppStoreAnswer {
        AppStoreAnswer(
            environment: environment, httpStatus: nil, body: [], failure: reason, calls: 0, usedPreviousSecret: false,
            elapsedMilliseconds: 0, correlationID: nil)
    }

    /// Whether verifyReceipt refuses the app's secret, or the receipt is another app's.
    var refusesSecret: Bool { response?.status == 21004 }

    /// Whether this is a whole answer about a genuine receipt of any app.
    fileprivate var mayBeVouchedFor: Bool { httpStatus == 200 && response?.status == 0 }

    /// Whether Apple said nothing that can be read.
    var saysNothing: Bool { response == nil && server?.contents == nil }
}

/// A claimed receipt with Apple's answer, which is interpreted only where it differs from the last one.
struct Checked: Sendable {
    let claim: Claim
    let answer: AppStoreAnswer
    /// The database's clock when the answer came: its clock at the claim plus the time that passed here since.
    let answeredAt: Instant
    /// The fingerprint of a complete answer about a genuine receipt with a correct clock; nil for every other answer.
    let fingerprint: Fingerprint?
    /// Whether the bytes show that the answer repeats the last one; then nothing has decoded it.
    let isRepeated: Bool
    /// The instant the answer is valid for.
    let clock: AnswerClock
    /// What the verified texts of the Server API state; nil for every other answer.
    let serverEvidence: Evidence?

    /// Takes an answer that came at `answeredAt`, now where nil.
    init(_ claim: Claim, _ answer: AppStoreAnswer, answeredAt: Instant? = nil) {
        let answeredAt = answeredAt ?? claim.databaseNow
        if let verdict = answer.server {
            self.init(ofServer: claim, answer, verdict, answeredAt: answeredAt)
        } else {
            self.init(ofReceipt: claim, answer, answeredAt: answeredAt)
        }
    }

    private init(ofReceipt claim: Claim, _ answer: AppStoreAnswer, answeredAt: Instant) {
        (self.claim, self.answer, self.answeredAt, serverEvidence) = (claim, answer, answeredAt, nil)
        if let outline = answer.outline, outline.saysGenuine, let requestedAt = outline.requestedAt,
            let last = claim.fingerprint, last == Fingerprint(of: answer, outline, about: claim)
        {
            let clock = AnswerClock(requestedAt, clock: claim.claimedAt, limit: .database(answeredAt))
            if clock.ahead == nil {
                (isRepeated, fingerprint, self.clock) = (true, last, clock)
                return
            }
        }
        isRepeated = false
        clock = AnswerClock(answer.response?.requestedAt, clock: claim.claimedAt, limit: .database(answeredAt))
        // An answer that was not read in full is read again each time: it may have said more than was read. So is one
        // with a wrong clock, because that is recorded.
        let isWhole = answer.mayBeVouchedFor && answer.response?.isComplete == true && clock.ahead == nil
        fingerprint = isWhole ? answer.outline.map { Fingerprint(of: answer, $0, about: claim) } : nil
    }

    /// Takes an answer of the Server API. Its texts are signed anew each time, so that only their meaning can be equal.
    private init(ofServer claim: Claim, _ answer: AppStoreAnswer, _ verdict: ServerVerdict, answeredAt: Instant) {
        (self.claim, self.answer, self.answeredAt) = (claim, answer, answeredAt)
        let evidence = verdict.contents.flatMap {
            Evidence(in: $0, bundleID: claim.app.bundleID, claimedAt: claim.claimedAt)
        }
        let clock = AnswerClock(evidence?.asOf, clock: claim.claimedAt, limit: .database(answeredAt))
        self.clock = clock
        serverEvidence = evidence.map { evidence in
            var evidence = evidence
            (evidence.asOf, evidence.clockAhead) = (clock.instant ?? evidence.asOf, clock.ahead)
            return evidence
        }
        isRepeated = false
        let isWhole = evidence?.isComplete == true && verdict.contents?.goesOn == false && clock.ahead == nil
        let whole = [0..<answer.body.count]
        fingerprint =
            isWhole
            ? Fingerprint(of: answer.body, lasting: whole, app: claim.app, environment: answer.environment) : nil
    }

    /// Whether the check learnt nothing about a receipt that Apple should know: there was no answer, or no usable one
    /// about a receipt that Apple vouched for before.
    var isFailure: Bool {
        guard !isRepeated, !answer.mayBeVouchedFor, !answer.isHeldBack else { return false }
        if let verdict = answer.server { return verdict.isFailure && answer.calls > 0 }
        switch finding {
        case .verified, .rejected: return false
        case .indeterminate: return answer.response == nil || claim.environment != nil
        }
    }

    /// Whether Apple shows that it is overloaded, or does not answer at all.
    var isOverloaded: Bool {
        guard !isRepeated, answer.calls > 0 else { return false }
        guard let http = answer.httpStatus else { return true }
        return http == 429 || http >= 500 || answer.response?.status == 21005
    }

    var finding: Finding {
        if let verdict = answer.server {
            if case .unbelievable(let ahead) = clock {
                return .indeterminate(.clockAhead(by: ahead, status: verdict.code))
            }
            return Finding(verdict, evidence: serverEvidence)
        }
        let finding = Finding(in: answer, for: claim.app.bundleID, clock: claim.claimedAt, limit: .database(answeredAt))
        guard case .verified(var evidence) = finding, answer.response?.requestedAt == nil else { return finding }
        evidence.arrivedAt = answeredAt
        return .verified(evidence)
    }

    /// How far the Server API was read; nil for an answer of verifyReceipt.
    fileprivate var serverRead: ServerRead? { answer.server.map { $0.contents.map(ServerRead.init) ?? .nothing } }

    var signedHeaders: Set<String> {
        Set((answer.server?.contents?.texts ?? []).compactMap { ShortText.header(of: $0.compact) })
    }
}

extension EqualAnswer {
    /// Returns nil where the answer differs in its bytes from the last one.
    init?(_ answer: Checked) {
        guard let fingerprint = answer.fingerprint, let asOf = answer.clock.instant else { return nil }
        self.init(to: answer.claim, fingerprint: fingerprint, asOf: asOf)
    }
}

extension Settlement {
    /// Reads an answer. `chains` are the numbers of the headers of signed texts, which are kept without them.
    init(reading checked: Checked, chains: [String: Int32]) {
        let answer = checked.answer
        self.init(
            claim: checked.claim, finding: checked.finding,
            body: answer.server == nil ? answer.body : ShortText.shortenedStrings(of: answer.body, numbers: chains),
            latestReceipt: answer.response?.latestReceipt.flatMap { try? ReceiptData(normalising: $0) }?.bytes,
            fingerprint: checked.fingerprint, server: checked.serverRead)
    }
}

extension Fingerprint {
    fileprivate init(of answer: AppStoreAnswer, _ outline: AnswerOutline, about claim: Claim) {
        self.init(of: answer.body, lasting: outline.lastingParts, app: claim.app, environment: answer.environment)
    }
}

extension SettledBatch {
    /// The changes. Receipts with the same subscription report the same change, which counts once.
    var events: [Event] {
        struct Reported: Hashable {
            let subscription: OriginalTransactionID?
            let environment: StoreEnvironment?
            let event: Event
        }
        let reported = settled.flatMap { receipt in
            receipt.subscriptions.flatMap { subscription in
                subscription.events.map {
                    Reported(subscription: subscription.id, environment: subscription.environment, event: $0)
                }
            } + receipt.purchaseEvents.map { Reported(subscription: nil, environment: nil, event: $0) }
        }
        return Set(reported).map(\.event)
    }

    fileprivate mutating func noteUnasked(of answers: [Checked]) {
        let failed = Set(failures.map(\.receiptID))
        for answer in answers where answer.answer.calls == 0 && !failed.contains(answer.claim.receiptID) {
            unasked[answer.claim.receiptID] = answer.answer.failure ?? "Apple was not asked."
        }
    }

    /// Receipts that Apple was asked about but gave no usable answer for, with the reason.
    var unanswered: [(receipt: ReceiptID, reason: String)] {
        settled.filter { $0.outcome == .indeterminate && unasked[$0.receiptID] == nil }
            .map { ($0.receiptID, $0.reason ?? "no answer") }
    }
}

/// The limit up to which Apple's clock is believed. It is real time also for a simulated App Store, whose months are
/// short but whose clock is its machine's: no speed-up divides it.
package enum ClockLimit: Sendable {
    /// An answer further ahead of the database's clock than this counts from the database's clock.
    static let aheadMax = Delay.minutes(5)
    /// An answer further ahead than this is not believed at all.
    static let believableMax = Delay.hours(1)

    /// No limit, for an answer that is only inspected.
    case none
    /// At most a little ahead of the database's clock at the time the answer came.
    case database(Instant)
    /// The instant that was believed when the answer was settled.
    case settled(Instant)
}

/// The instant an answer is valid for.
enum AnswerClock: Hashable {
    /// Apple's clock, or the database's where the answer has none.
    case believed(Instant)
    /// The database's clock, because Apple's was ahead of it by `ahead`.
    case clamped(Instant, ahead: Delay)
    /// No instant, because Apple's clock was ahead of the database's by `ahead`.
    case unbelievable(ahead: Delay)

    /// Determines the clock of an answer from its `request_date`; uses `clock` where it has none (legacy receipts).
    init(_ requestedAt: Instant?, clock: Instant, limit: ClockLimit) {
        guard let requestedAt else {
            self = .believed(clock)
            return
        }
        switch limit {
        case .none: self = .believed(requestedAt)
        case .settled(let instant): self = .believed(instant)
        case .database(let now):
            let ahead = requestedAt - now
            if ahead > ClockLimit.believableMax {
                self = .unbelievable(ahead: ahead)
            } else if ahead > ClockLimit.aheadMax {
                self = .clamped(now, ahead: ahead)
            } else {
                self = .believed(requestedAt)
            }
        }
    }

    /// The instant the answer is valid for; nil where Apple's clock is unbelievable.
    var instant: Instant? {
        switch self {
        case .believed(let instant), .clamped(let instant, _): instant
        case .unbelievable: nil
        }
    }

    /// How far Apple's clock was ahead of the database's, if too far; nil otherwise.
    var ahead: Delay? {
        switch self {
        case .believed: nil
        case .clamped(_, let ahead), .unbelievable(let ahead): ahead
        }
    }
}
