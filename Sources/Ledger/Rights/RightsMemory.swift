import Postgres
import Subscriptions

/// Customers' rights that were read, and what has changed since: a value that decides which of them still hold.
///
/// Looks at what changed are counted. An answer holds for a while, when nothing it rests on changed in a look that came after
/// the read began, and time alone has not made it another one. What is over is removed bit by bit: nobody waits for that.
struct RightsMemory: Sendable {
    /// Answers that are kept, at most.
    static let answersMax = 100_000
    /// Changes that are kept, at most.
    static let changesMax = 1_000_000
    /// How long after a look answers are given without another one, in milliseconds.
    static let behindMillisecondsMax: Int64 = 20
    /// What one answer may rest on: who owns more is always read again.
    static let basisMax = 100
    /// How long an answer is kept, at most.
    static let answerSeconds = 60
    /// How long a change is kept: longer than an answer whose read began before the change was told.
    static let changeSeconds = 120

    /// When a read or a look began: of what had changed until then it knows.
    struct Mark: Sendable {
        /// Since when changes are to be told; nil from now on.
        let look: RightLook?
        fileprivate let looks: Int
        fileprivate let time: ContinuousClock.Instant
    }

    private struct Answer {
        let rights: Rights
        /// How many looks there were when its read began.
        let looks: Int
        let readSince: ContinuousClock.Instant
    }

    private var answers: [CustomerName: Answer] = [:]
    private var answersInOrder = Fifo<(customer: CustomerName, readSince: ContinuousClock.Instant)>()
    /// In which look something changed last.
    private var changes: [RightBasis: Int] = [:]
    private var changesInOrder = Fifo<(basis: RightBasis, look: Int, lookedSince: ContinuousClock.Instant)>()
    private var look: RightLook?
    /// The database's clock at the last look.
    private var lookedAt = Instant(milliseconds: .min)
    /// When the last look began; nil before the first, and when what it told is forgotten.
    private var lookedSince: ContinuousClock.Instant?
    /// When somebody was last sent to look before it was necessary.
    private var lookWantedSince: ContinuousClock.Instant?
    /// How many looks there were.
    private var looks = 0
    /// The last look in which everything had changed.
    private var everythingChanged = 0

    /// How many answers are kept.
    var count: Int { answers.count }

    /// Begins a read or a look at `now`.
    func begin(at now: ContinuousClock.Instant) -> Mark { Mark(look: look, looks: looks, time: now) }

    /// Takes in what a look that began at `mark` told.
    mutating func note(_ changes: RightChanges, lookingSince mark: Mark) {
        looks += 1
        look = changes.look
        lookedAt = changes.time
        lookedSince = mark.time
        switch changes.extent {
        case .everything: everythingChanged = looks
        case .these(let changed): note(changed, at: mark.time)
        }
    }

    private mutating func note(_ changed: [RightBasis], at time: ContinuousClock.Instant) {
        for basis in changed {
            changes[basis] = looks
            changesInOrder.append((basis, looks, time))
            for _ in 0..<2 { removeOldChange(at: time) }
        }
        guard changes.count > Self.changesMax else { return }
        everythingChanged = looks
        changes = [:]
        changesInOrder = Fifo()
    }

    private mutating func removeOldChange(at time: ContinuousClock.Instant) {
        guard let oldest = changesInOrder.first, time - oldest.lookedSince >= .seconds(Self.changeSeconds) else {
            return
        }
        changesInOrder.removeFirst()
        if changes[oldest.basis] == oldest.look { changes[oldest.basis] = nil }
    }

    /// Forgets every answer, and those that are being read.
    mutating func forget() {
        looks += 1
        everythingChanged = looks
        lookedSince = nil
    }

    /// A customer's rights at `now`, if the last look was just before; nil when it takes a new one to tell.
    ///
    /// Half-way one caller is sent to look, so that the others need not wait for it.
    mutating func rights(of customer: CustomerName, at now: ContinuousClock.Instant) -> Rights? {
        guard let lookedSince, now - lookedSince <= .milliseconds(Self.behindMillisecondsMax) else { return nil }
        let half = Duration.milliseconds(Self.behindMillisecondsMax / 2)
        if now - lookedSince > half, now - (lookWantedSince ?? lookedSince) > half {
            lookWantedSince = now
            return nil
        }
        let passed = Delay(milliseconds: Self.behindMillisecondsMax)
        return rights(of: customer, at: lookedAt + passed, askedAt: begin(at: now))
    }

    /// Whether an answer held at the last look, and so probably holds at `mark`.
    func probablyKnows(_ customer: CustomerName, at mark: Mark) -> Bool {
        rights(of: customer, at: lookedAt, askedAt: mark) != nil
    }

    /// A customer's rights at `time`, by the database's clock; nil when they are not known any more.
    func rights(of customer: CustomerName, at time: Instant, askedAt mark: Mark) -> Rights? {
        guard let answer = answers[customer], !Self.isOver(answer.readSince, at: mark.time),
            answer.looks >= everythingChanged, answer.rights.lastsUntil.map({ $0 > time }) ?? true,
            answer.rights.basis.allSatisfy({ (changes[$0] ?? 0) <= answer.looks })
        else { return nil }
        return answer.rights
    }

    /// Keeps rights whose read began at `mark`.
    mutating func keep(_ rights: Rights, of customer: CustomerName, readSince mark: Mark) {
        guard (1...Self.basisMax).contains(rights.basis.count) else { return }
        answers[customer] = Answer(rights: rights, looks: mark.looks, readSince: mark.time)
        answersInOrder.append((customer, mark.time))
        for _ in 0..<2 { removeOldAnswer(at: mark.time) }
    }

    private mutating func removeOldAnswer(at time: ContinuousClock.Instant) {
        guard let oldest = answersInOrder.first,
            Self.isOver(oldest.readSince, at: time) || answersInOrder.count > Self.answersMax
        else { return }
        answersInOrder.removeFirst()
        if answers[oldest.customer]?.readSince == oldest.readSince { answers[oldest.customer] = nil }
    }

    private static func isOver(_ readSince: ContinuousClock.Instant, at time: ContinuousClock.Instant) -> Bool {
        time - readSince >= .seconds(answerSeconds)
    }
}
