import Logging
import Synchronization

/// What checks came to. Each check is one of equal, changed, refused, without an answer, or failed.
struct CheckCounts: Sendable, Hashable {
    /// Answers of Apple's, and questions that got none.
    var checks = 0
    /// Apple said nothing new.
    var equal = 0
    /// Something is otherwise than before: there are events.
    var changed = 0
    /// Events, of all of them.
    var events = 0
    /// Apple does not vouch for the receipt.
    var refused = 0
    /// No answer, or none that says anything of the receipt; refusals during an incident count here too.
    var noAnswer = 0
    /// The answer could not be written.
    var failed = 0

    /// Adds others.
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
    /// What the batch of so many answers came to.
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

/// What a process checked since the log had a line about it.
final class CheckCounting: Sendable {
    private let counts = Mutex(CheckCounts())

    /// Adds what a batch came to.
    func add(_ more: CheckCounts) {
        counts.withLock { $0 += more }
    }

    /// Hands out what was counted since the last time.
    func take() -> CheckCounts {
        counts.withLock { counts in
            defer { counts = CheckCounts() }
            return counts
        }
    }
}
