import Ledger
import Logging
import Synchronization

/// The results of checks. Each check is one of: equal, changed, refused, no answer, or failed.
struct CheckCounts: Sendable, Hashable {
    /// The number of all checks, with an answer or without.
    var checks = 0
    /// Checks whose answer had nothing new.
    var equal = 0
    /// Checks that changed something and so have events.
    var changed = 0
    /// The number of events of all checks.
    var events = 0
    /// Checks of a receipt that Apple does not vouch for.
    var refused = 0
    /// Checks without an answer, or with one that says nothing about the receipt. Refusals during an incident count
    /// here too.
    var noAnswer = 0
    /// Checks whose answer could not be written.
    var failed = 0

    /// Adds the counts of `right`.
    static func += (left: inout CheckCounts, right: CheckCounts) {
        left.checks += right.checks
        left.equal += right.equal
        left.changed += right.changed
        left.events += right.events
        left.refused += right.refused
        left.noAnswer += right.noAnswer
        left.failed += right.failed
    }

    /// The counts as fields of a log line.
    var metadata: Logger.Metadata {
        [
            "checks": "\(checks)", "equal": "\(equal)", "changed": "\(changed)", "events": "\(events)",
            "refused": "\(refused)", "no_answer": "\(noAnswer)", "failed": "\(failed)",
        ]
    }
}

extension CheckedBatch {
    /// Returns the counts of a batch of `answers` answers.
    func counts(of answers: Int) -> CheckCounts {
        var counts = CheckCounts()
        counts.checks = answers
        counts.failed = answers - receipts
        counts.events = events.count
        for receipt in settled {
            switch receipt.outcome {
            case .verified: if receipt.hasEvents { counts.changed += 1 }
            case .rejected: counts.refused += 1
            case .indeterminate: counts.noAnswer += 1
            }
        }
        counts.equal = receipts - counts.changed - counts.refused - counts.noAnswer
        return counts
    }
}

/// The checks of a process since its last log line about them.
final class CheckCounting: Sendable {
    private let counts = Mutex(CheckCounts())

    /// Adds the counts of a batch.
    func add(_ more: CheckCounts) {
        counts.withLock { $0 += more }
    }

    /// Returns the counts since the last call, and resets them.
    func take() -> CheckCounts {
        counts.withLock { counts in
            defer { counts = CheckCounts() }
            return counts
        }
    }
}
