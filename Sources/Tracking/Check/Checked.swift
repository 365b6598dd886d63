import AppStore
import Foundation
import Ledger
import Subscriptions

/// A claimed receipt with Apple's answer, which is interpreted only where it differs from the last one.
struct Checked: Sendable {
    let claim: Claim
    let answer: AppStoreAnswer
    /// The database's clock when the answer came: its clock at the claim plus the time that passed here since.
    let answeredAt: Instant
    /// The fingerprint of a complete answer about a genuine receipt with a correct clock; nil for every other answer.
    let fingerprint: Fingerprint?

    init(_ claim: Claim, _ answer: AppStoreAnswer) {
        self.claim = claim
        self.answer = answer
        answeredAt = claim.databaseNow
        // An answer that was not read in full is read again each time: it may have said more than was read. So is one
        // with a wrong clock, because that is recorded.
        let clock = AnswerClock(of: answer.response, clock: claim.claimedAt, limit: .database(answeredAt))
        let isWhole = answer.mayBeVouchedFor && answer.response?.isComplete == true && clock.ahead == nil
        fingerprint = isWhole ? Fingerprint(of: answer, about: claim) : nil
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

    /// The answer as the ledger takes it.
    var pending: PendingAnswer {
        PendingAnswer(claim: claim, body: answer.body, asOf: clock.instant, fingerprint: fingerprint) {
            PendingAnswer.Interpretation(
                finding: finding,
                latestReceipt: answer.response?.latestReceipt.flatMap { try? ReceiptData(normalising: $0) }?.bytes)
        }
    }
}

extension AppStoreAnswer {
    /// Whether this is a whole answer about a genuine receipt of any app.
    fileprivate var mayBeVouchedFor: Bool { httpStatus == 200 && response?.status == 0 }
}

extension Fingerprint {
    fileprivate init(of answer: AppStoreAnswer, about claim: Claim) {
        self.init(
            of: answer.body, lasting: answer.lastingParts, app: claim.app,
            environment: StoreEnvironment(answer.environment))
    }
}

extension String {
    /// The longest text from Apple that a column keeps, in Unicode scalars. A PostgreSQL index refuses more than 2,704
    /// bytes, and two such texts make one key. Apple's own texts are a fifth of that.
    static let storableScalarsMax = 300

    /// The text in a form a column can store: U+FFFD replaces U+0000, and a text that is too long is cut.
    ///
    /// One text that cannot be stored would make every settlement of its answer fail. The observation keeps Apple's
    /// text.
    var storable: String {
        let isShort = utf8.count <= Self.storableScalarsMax || unicodeScalars.count <= Self.storableScalarsMax
        if isShort, !utf8.contains(0) { return self }
        var text = UnicodeScalarView()
        for scalar in unicodeScalars.prefix(Self.storableScalarsMax) {
            text.append(scalar == "\u{0}" ? "\u{FFFD}" : scalar)
        }
        return String(text)
    }
}
