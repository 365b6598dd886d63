import AppStore
import Ledger
import Subscriptions

/// A claim with what Apple said, as it came.
struct Answered: Sendable {
    let claim: Claim
    let asked: AppleAnswer
    /// The database's clock when the answer came.
    let answeredAt: Instant
}

/// Answers on their way from the calls to the settlements. A settlement takes all that have arrived meanwhile.
actor AnswerQueue {
    /// How long the first answer waits for others to be settled with, in milliseconds. A settlement of one answer costs
    /// half as much as one of a hundred.
    static let lingerMilliseconds = 40

    private var answers: [Answered] = []
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private var isFinished = false

    /// Adds an answer.
    func add(_ answer: Answered) {
        answers.append(answer)
        if !waiting.isEmpty { waiting.removeFirst().resume() }
    }

    /// Returns the answers that arrived until shortly after the first, at most `count`. Empty when no more will come.
    func next(atMost count: Int) async -> [Answered] {
        while true {
            while answers.isEmpty, !isFinished {
                await withCheckedContinuation { waiting.append($0) }
            }
            if answers.count < count, !isFinished {
                // The task is cancelled only when the process ends. Then there is no need to wait.
                try? await Task.sleep(for: .milliseconds(Self.lingerMilliseconds))
            }
            let batch = Array(answers.prefix(count))
            answers.removeFirst(batch.count)
            if !batch.isEmpty || isFinished { return batch }
        }
    }

    /// Marks the queue as finished: no more answers will come.
    func finish() {
        isFinished = true
        for caller in waiting { caller.resume() }
        waiting = []
    }
}
