import Postgres
import Subscriptions

/// Customers' rights that were read, and what was told since: a value that decides which of them still hold.
///
/// An answer holds for a while, when nothing it rests on changed in a look that came after the read began, and time alone has
/// not made it another one. What is over is removed bit by bit: nobody waits for that.
struct RightsMemory: Sendable {
    /// Answers that are kept, at most.
    static let answersMax = 100_000
    /// How long after a look answers are given without another one, in milliseconds.
    static let behindMillisecondsMax: Int64 = 20
    /// What one answer may rest on: who owns more is always read again.
    static let basisMax = 100
    /// How long an answer is kept, at most.
    static let answerSeconds = 60

    /// When a read or a look began: of what had changed until then it knows.
    struct Mark: Sendable {
        /// Since when changes are to be told; nil from now on.
        let look: RightLook?
        fileprivate let looks: Int
        fileprivate let time: ContinuousClock.Instant
    }

    private struct Answer {
        var rights: Rights
        /// How many looks there were when its read began, or when its clocks were told.
        var looks: Int
        let readSince: ContinuousClock.Instant
        /// When it was read, or the look began that told its clocks: what an earlier look tells of clocks may be older.
        var isAsOf: ContinuousClock.Instant
    }

    private var answers: [CustomerName: Answer] = [:]
    private var answersInOrder = Fifo<(customer: CustomerName, readSince: ContinuousClock.Instant)>()
    private var told = ToldChanges()
    private var look: RightLook?
    /// The database's clock at the last look.
    private var lookedAt = Instant(milliseconds: .min)
    /// When the last look began; nil before the first, and when what it told is forgotten.
    private var lookedSince: ContinuousClock.Instant?
    /// When somebody was last sent to look before it was necessary.
    private var lookWantedSince: ContinuousClock.Instant?

    /// How many answers are kept.
    var count: Int { answers.count }

    /// Begins a read or a look at `now`.
    func begin(at now: ContinuousClock.Instant) -> Mark { Mark(look: look, looks: told.looks, time: now) }

    /// Takes in what a look that began at `mark` told.
    mutating func note(_ changes: RightChanges, lookingSince mark: Mark) {
        look = changes.look
        lookedAt = changes.time
        lookedSince = mark.time
        told.note(changes, lookedSince: mark.time)
    }

    /// Forgets every answer, and those that are being read.
    mutating func forget() {
        told.forget()
        lookedSince = nil
    }

    /// Whether it is time to look, so that nobody has to wait for it: true once for each time.
    mutating func wantsLook(at now: ContinuousClock.Instant) -> Bool {
        let early = Duration.milliseconds(Self.behindMillisecondsMax / 4)
        guard let lookedSince, now - lookedSince > early, now - (lookWantedSince ?? lookedSince) > early else {
            return false
        }
        lookWantedSince = now
        return true
    }

    /// A customer's rights at `now`, if the last look was just before; nil when it takes a new one to tell.
    mutating func rights(of customer: CustomerName, at now: ContinuousClock.Instant) -> Rights? {
        let passed = Delay(milliseconds: Self.behindMillisecondsMax)
        guard let lookedSince, now - lookedSince <= .milliseconds(passed.milliseconds) else { return nil }
        return rights(of: customer, at: lookedAt + passed, askedAt: begin(at: now))
    }

    /// Whether an answer held at the last look, and so probably holds at `mark`.
    mutating func probablyKnows(_ customer: CustomerName, at mark: Mark) -> Bool {
        rights(of: customer, at: lookedAt, askedAt: mark) != nil
    }

    /// A customer's rights at `time`, by the database's clock; nil when they are not known any more.
    mutating func rights(of customer: CustomerName, at time: Instant, askedAt mark: Mark) -> Rights? {
        guard let answer = answers[customer], !Self.isOver(answer.readSince, at: mark.time),
            answer.rights.lastsUntil.map({ $0 > time }) ?? true, told.holds(answer.rights.basis, since: answer.looks)
        else { return nil }
        let checks = told.checks(of: answer.rights.basis, since: answer.looks)
        return checks.isEmpty ? answer.rights : rights(of: customer, after: checks)
    }

    /// The rights with the clocks of checks, if it is sure that they are newer and what they are about.
    private mutating func rights(of customer: CustomerName, after checks: [ToldChanges.Check]) -> Rights? {
        guard var answer = answers[customer], !answer.rights.isTied,
            checks.allSatisfy({ $0.lookedSince >= answer.isAsOf })
        else { return nil }
        answer.looks = told.looks
        answer.isAsOf = checks.map(\.lookedSince).max() ?? answer.isAsOf
        answer.rights = answer.rights.checked(checks.map(\.clocks))
        answers[customer] = answer
        return answer.rights
    }

    /// Keeps rights whose read began at `mark` and was over at `now`.
    mutating func keep(
        _ rights: Rights, of customer: CustomerName, readSince mark: Mark, until now: ContinuousClock.Instant
    ) {
        guard (1...Self.basisMax).contains(rights.basis.count) else { return }
        answers[customer] = Answer(rights: rights, looks: mark.looks, readSince: mark.time, isAsOf: now)
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
