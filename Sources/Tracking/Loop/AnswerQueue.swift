/// Answers on their way from the calls to the settlements: whoever settles takes all that has arrived meanwhile.
actor AnswerQueue {
    private var answers: [Checked] = []
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private var isFinished = false

    /// Adds an answer.
    func add(_ answer: Checked) {
        answers.append(answer)
        if !waiting.isEmpty { waiting.removeFirst().resume() }
    }

    /// What has arrived, at most `count`; waits for the first. Empty when no more will come.
    func next(atMost count: Int) async -> [Checked] {
        while answers.isEmpty, !isFinished {
            await withCheckedContinuation { waiting.append($0) }
        }
        let batch = Array(answers.prefix(count))
        answers.removeFirst(batch.count)
        return batch
    }

    /// Says that no more answers will come.
    func finish() {
        isFinished = true
        for caller in waiting { caller.resume() }
        waiting = []
    }
}
