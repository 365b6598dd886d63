import Subscriptions
import Synchronization

@testable import Ledger

/// Answers under the words that stand for their bodies.
final class AnswerLibrary: Sendable {
    private let answers = Mutex<[[UInt8]: Evidence]>([:])

    /// Returns the body that stands for an answer from now on.
    func keep(_ evidence: Evidence) -> [UInt8] {
        answers.withLock { answers in
            let body = Array("answer \(answers.count)".utf8)
            answers[body] = evidence
            return body
        }
    }

    var reading: EvidenceReader {
        EvidenceReader(answer: { [self] kept in answers.withLock { $0[kept.body] } }, notification: { _ in nil })
    }
}
