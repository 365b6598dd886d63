import Ledger
import Synchronization

/// Counts Apple's answers per app until they are written down.
final class AnswerTally: Sendable {
    private let counts = Mutex<[Int32: AnswerCount]>([:])

    /// Counts an answer.
    func count(_ answer: Checked) {
        let worth = answer.worth
        counts.withLock { counts in
            switch worth {
            case .verified: counts[answer.claim.app.id, default: AnswerCount()].verified += 1
            case .rejected: counts[answer.claim.app.id, default: AnswerCount()].rejected += 1
            case .failed: counts[answer.claim.app.id, default: AnswerCount()].failed += 1
            }
        }
    }

    /// Hands out what was counted since the last time.
    func take() -> [Int32: AnswerCount] {
        counts.withLock { counts in
            defer { counts = [:] }
            return counts
        }
    }
}

/// What an answer is worth, roughly.
enum AnswerWorth: Sendable {
    case verified, rejected, failed
}

extension Checked {
    /// Roughly what the answer is worth; of most answers their fingerprint tells, so that they are not read twice.
    fileprivate var worth: AnswerWorth {
        guard fingerprint == nil else { return .verified }
        return switch finding {
        case .verified: .verified
        case .rejected: .rejected
        case .indeterminate: .failed
        }
    }
}

extension Tracker {
    /// Writes down what was counted. What cannot be written is lost: it is a picture, not an account.
    func writeTally() async {
        await attempt("count Apple's answers") { try await ledger.addChecks(tally.take()) }
    }
}
