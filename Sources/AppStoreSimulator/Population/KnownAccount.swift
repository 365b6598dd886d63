/// An account that was read before: its state so far, the manual actions on it, and the rendered responses.
struct KnownAccount: Sendable {
    struct AnswerKey: Equatable, Sendable {
        let identity: ReceiptIdentity
        let excludesOldTransactions: Bool
    }

    /// A manual action and its time.
    struct ManualAction: Sendable {
        let at: StoreTime
        let action: CustomerAction
    }

    private(set) var account: Account
    private(set) var manualActions: [ManualAction] = []
    /// The latest instant at which it was read; the account itself advances only when something happens.
    private(set) var now: StoreTime
    private var nextChange: StoreTime?
    private var answers: [(key: AnswerKey, answer: RenderedAnswer)] = []
    /// The bytes of responses that a change invalidated; the shard counts the bytes it keeps.
    private var forgottenBytes = 0

    init(_ account: Account) {
        self.account = account
        self.now = account.now
        self.nextChange = account.now
    }

    /// Advances to an instant. An earlier instant changes nothing.
    mutating func look(at moment: StoreTime) {
        now = max(now, moment)
        guard let nextChange, nextChange <= now else { return }
        live()
    }

    /// Returns the account, advanced to now.
    mutating func settled() -> Account {
        account.advance(to: now)
        return account
    }

    mutating func apply(_ action: CustomerAction) throws(ActionRefused) -> ActionOutcome {
        account.advance(to: now)
        let outcome = try account.apply(action)
        manualActions.append(ManualAction(at: now, action: action))
        live()
        return outcome
    }

    /// Returns the rendered response at an instant, if it is kept, and how many bytes of other responses were dropped.
    mutating func answer(
        for key: AnswerKey, at moment: StoreTime
    ) -> (answer: RenderedAnswer?, now: StoreTime, isDeleted: Bool, forgottenBytes: Int) {
        look(at: moment)
        return (answers.first { $0.key == key }?.answer, now, account.isDeleted, takeForgottenBytes())
    }

    mutating func keep(_ answer: RenderedAnswer, for key: AnswerKey) { answers.append((key, answer)) }

    mutating func forgetAnswers() {
        forgottenBytes += answers.reduce(0) { $0 + $1.answer.size }
        answers = []
    }

    /// Returns the bytes of dropped responses, each once.
    mutating func takeForgottenBytes() -> Int {
        defer { forgottenBytes = 0 }
        return forgottenBytes
    }

    private mutating func live() {
        account.advance(to: now)
        nextChange = account.nextChange
        forgetAnswers()
    }
}
