import Synchronization

/// A part of the accounts behind its own lock, so that callers rarely wait for each other.
final class Shard: Sendable {
    private struct State: Sendable {
        var residents: [Int: KnownAccount] = [:]
        var keptBytes = 0

        /// Drops every kept response when there are too many bytes; later calls render theirs again.
        mutating func makeRoom(for size: Int, max: Int) {
            if keptBytes + size > max {
                for index in residents.keys {
                    residents[index]?.forgetAnswers()
                    keptBytes -= residents[index]?.takeForgottenBytes() ?? 0
                }
            }
            keptBytes += size
        }
    }

    private let state = Mutex(State())
    private let keptBytesMax: Int

    init(keptBytesMax: Int) {
        self.keptBytesMax = keptBytesMax
    }

    /// The number of bytes of kept responses.
    var keptBytes: Int { state.withLock { $0.keptBytes } }

    /// Runs `body` on an account at an instant; the account is created on its first use.
    func with<Result: Sendable, Failure: Error>(
        _ index: Int, at now: StoreTime, made: () -> Account, _ body: (inout KnownAccount) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try state.withLock { (state) throws(Failure) -> Result in
            state.residents[index, default: KnownAccount(made())].look(at: now)
            return try body(&state.residents[index, default: KnownAccount(made())])
        }
    }

    /// Returns the rendered response, and renders it when it is not kept.
    func answer(
        _ index: Int, at now: StoreTime, for key: KnownAccount.AnswerKey, made: () -> Account,
        rendered: (Account) -> RenderedAnswer
    ) -> (answer: RenderedAnswer, now: StoreTime)? {
        state.withLock { state in
            let found = state.residents[index, default: KnownAccount(made())].answer(for: key, at: now)
            state.keptBytes -= found.forgottenBytes
            if let answer = found.answer { return (answer, found.now) }
            guard !found.isDeleted, let account = state.residents[index]?.settled() else { return nil }
            let answer = rendered(account)
            state.makeRoom(for: answer.size, max: keptBytesMax)
            state.residents[index]?.keep(answer, for: key)
            return (answer, found.now)
        }
    }
}
