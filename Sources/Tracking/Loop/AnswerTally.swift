import Ledger
import Subscriptions
import Synchronization

/// A count of Apple's answers per app until they are written to the database.
final class AnswerTally: Sendable {
    private let counts = Mutex<[Int32: AnswerCount]>([:])

    /// Counts answers.
    func count(_ answers: [Checked]) {
        let found = answers.map { (app: $0.claim.app.id, quality: $0.quality) }
        counts.withLock { counts in
            for (app, quality) in found {
                switch quality {
                case .verified: counts[app, default: AnswerCount()].verified += 1
                case .rejected: counts[app, default: AnswerCount()].rejected += 1
                case .failed: counts[app, default: AnswerCount()].failed += 1
                }
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
    fileprivate var quality: AnswerQuality {
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
        await attempt("count Apple's answers") { try await ledger.settlements.addChecks(tally.take()) }
    }
}
