import AppStore
import Subscriptions

/// A claimed receipt with Apple's answer, which is interpreted only where it differs from the last one.
struct Checked: Sendable {
    let claim: Claim
    let answer: AppStoreAnswer
    /// The database's clock when the answer came: its clock at the claim plus the time that passed here since.
    let answeredAt: Instant
    /// The fingerprint of a complete answer about a genuine receipt with a correct clock; nil for every other answer.
    let fingerprint: Fingerprint?
    /// Whether the bytes show that the answer repeats the last one; then nothing has decoded it.
    let repeatsLast: Bool
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
                (repeatsLast, fingerprint, self.clock) = (true, last, clock)
                return
            }
        }
        repeatsLast = false
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
        repeatsLast = false
        let isWhole = evidence?.isComplete == true && verdict.contents?.goesOn == false && clock.ahead == nil
        let whole = [0..<answer.body.count]
        fingerprint =
            isWhole
            ? Fingerprint(of: answer.body, lasting: whole, app: claim.app, environment: answer.environment) : nil
    }

    /// Whether the check learnt nothing about a receipt that Apple should know: there was no answer, or no usable one
    /// about a receipt that Apple vouched for before.
    var isFailure: Bool {
        guard !repeatsLast, !answer.mayBeVouchedFor, !answer.isHeldBack else { return false }
        if let verdict = answer.server { return verdict.isFailure && answer.calls > 0 }
        switch finding {
        case .verified, .rejected: return false
        case .indeterminate: return answer.response == nil || claim.environment != nil
        }
    }

    /// Whether Apple shows that it is overloaded, or does not answer at all.
    var isOverloaded: Bool {
        guard !repeatsLast, answer.calls > 0 else { return false }
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

extension AppStoreAnswer {
    /// Whether this is a whole answer about a genuine receipt of any app.
    fileprivate var mayBeVouchedFor: Bool { httpStatus == 200 && response?.status == 0 }
}
