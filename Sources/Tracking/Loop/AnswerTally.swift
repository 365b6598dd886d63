import Ledger
import Synchronization

/// A count of Apple's answers per app until they are written to the database.
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

    /// Returns the counts since the last call, and resets them.
    func take() -> [Int32: AnswerCount] {
        counts.withLock { counts in
            defer { counts = [:] }
            return counts
        }
    }
}

/// The rough outcome of an answer.
enum AnswerQuality: Sendable {
    case verified, rejected, failed
}

extension Checked {
    /// The rough outcome of the answer. For most answers the fingerprint shows it, so that they are not read twice.
    fileprivate var worth: AnswerQuality {
        guard fingerprint == nil else { return .verified }
        return switch finding {
        case .verified: .verified
        case .rejected: .rejected
        case .indeterminate: .failed
        }
    }
}

extension Tracker {
    /// Writes the counts to the database. Counts that cannot be written are lost: they are statistics, not a record.
    func writeTally() async {
        await attempt("count Apple's answers") { try await ledger.addChecks(tally.take()) }
    }
}
