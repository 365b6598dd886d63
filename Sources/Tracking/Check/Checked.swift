import AppStore
import Foundation
import Ledger
import Subscriptions

/// Apple's answer about one claimed receipt.
struct Checked: Sendable {
    let claim: Claim
    let answer: AppStoreAnswer
    /// The database's clock when the answer came: its clock at the claim plus the time that passed here since.
    let answeredAt: Instant
    /// The fingerprint of a complete answer about a genuine receipt with a correct clock; nil for every other answer.
    let fingerprint: Fingerprint?

    init(claim: Claim, answer: AppStoreAnswer, speedup: Int) {
        self.claim = claim
        self.answer = answer
        let held = ContinuousClock.now - claim.heldSince
        answeredAt = claim.claimedAt + Delay(milliseconds: Int64(held.seconds * 1_000))
        // An answer that was not read in full is read again each time: it may have said more than was read. So is one
        // with a wrong clock, because that is recorded.
        let clock = AnswerClock(of: answer.response, clock: claim.claimedAt, limit: .database(answeredAt))
        let isWhole = answer.mayBeVouchedFor && answer.response?.isComplete == true && clock.ahead == nil
        fingerprint = isWhole ? Fingerprint(of: answer, about: claim, speedup: speedup) : nil
    }

    /// Whether the check learnt nothing about a receipt that Apple should know: there was no answer, or no usable one
    /// about a receipt that Apple vouched for before.
    var isFailure: Bool {
        guard !answer.mayBeVouchedFor else { return false }
        switch finding {
        case .verified, .rejected: return false
        case .indeterminate: return answer.response == nil || claim.environment != nil
        }
    }

    /// Whether Apple shows that it is overloaded, or does not answer at all.
    var isOverloaded: Bool {
        guard answer.calls > 0 else { return false }
        guard let http = answer.httpStatus else { return true }
        return http == 429 || http >= 500 || answer.response?.status == 21005
    }

    /// The outcome of the answer.
    var finding: Finding {
        Finding(in: answer, for: claim.app.bundleID, clock: claim.claimedAt, limit: .database(answeredAt))
    }

    /// The instant the answer is valid for.
    var clock: AnswerClock {
        AnswerClock(of: answer.response, clock: claim.claimedAt, limit: .database(answeredAt))
    }

    /// The answer, when it repeats the previous one; nil otherwise.
    var equal: EqualAnswer? {
        guard let fingerprint, let asOf = clock.instant else { return nil }
        return EqualAnswer(to: claim, fingerprint: fingerprint, asOf: asOf)
    }

    /// The answer, read in full.
    var settlement: Settlement {
        Settlement(
            claim: claim, finding: finding, body: answer.body,
            latestReceipt: answer.response?.latestReceipt.flatMap { try? ReceiptData(normalising: $0) }?.bytes,
            fingerprint: fingerprint)
    }
}

extension AppStoreAnswer {
    /// Whether this is a whole answer about a genuine receipt of any app.
    fileprivate var mayBeVouchedFor: Bool { httpStatus == 200 && response?.status == 0 }
}

extension Fingerprint {
    fileprivate init(of answer: AppStoreAnswer, about claim: Claim, speedup: Int) {
        self.init(
            of: answer.body, lasting: answer.lastingParts, app: claim.app,
            environment: StoreEnvironment(answer.environment), speedup: speedup)
    }
}
