/// An account somebody has looked at: how far it has lived, what was done to it by hand, and the finished answers.
struct Resident: Sendable {
    struct AnswerKey: Equatable, Sendable {
        let identity: ReceiptIdentity
        let excludesOldTransactions: Bool
    }

    /// Something done by hand, and when.
    struct Deed: Sendable {
        let at: Moment
        let action: CustomerAction
    }

    private(set) var account: Account
    private(set) var deeds: [Deed] = []
    /// The instant it has been looked at; the account itself is moved on only when something happens.
    private(set) var now: Moment
    private var nextChange: Moment?
    private var answers: [(key: AnswerKey, answer: RenderedAnswer)] = []
    /// Of answers that a change made worthless; the shard counts what it keeps.
    private var forgottenBytes = 0

    init(_ account: Account) {
        self.account = account
        self.now = account.now
        self.nextChange = account.now
    }

    /// Lets the time pass. An earlier instant changes nothing.
    mutating func look(at moment: Moment) {
        now = max(now, moment)
        guard let nextChange, nextChange <= now else { return }
        live()
    }

    /// The account, lived up to now.
    mutating func settled() -> Account {
        account.advance(to: now)
        return account
    }

    mutating func apply(_ action: CustomerAction) throws(ActionRefused) {
        account.advance(to: now)
        try account.apply(action)
        deeds.append(Deed(at: now, action: action))
        live()
    }

    /// The finished answer at an instant, when it is kept, and how many bytes of others were forgotten on the way.
    mutating func answer(
        for key: AnswerKey, at moment: Moment
    ) -> (answer: RenderedAnswer?, now: Moment, isDeleted: Bool, forgottenBytes: Int) {
        look(at: moment)
        return (answers.first { $0.key == key }?.answer, now, account.isDeleted, takeForgottenBytes())
    }

    mutating func keep(_ answer: RenderedAnswer, for key: AnswerKey) { answers.append((key, answer)) }

    mutating func forgetAnswers() {
        forgottenBytes += answers.reduce(0) { $0 + $1.answer.size }
        answers = []
    }

    /// The bytes of forgotten answers, each once.
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
