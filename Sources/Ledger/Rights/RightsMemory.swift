import DequeModule
import Subscriptions

/// Customers' entitlements in memory, and the changes since they were read: a value that decides which of them still
/// hold.
///
/// An answer holds for a while, when no look that came after the read began reports a change of its basis and time
/// alone has not changed it. An answer that was wanted lately and does not hold any more is named for another read, so
/// that the next caller need not wait. Old answers are removed bit by bit, which delays no caller.
struct RightsMemory: Sendable {
    /// Answers that are kept, at most.
    static let answersMax = 100_000
    /// How long answers are given after a look without another one, in milliseconds.
    static let behindMillisecondsMax: Int64 = 20
    /// The most things that one answer may depend on: a customer who owns more is always read again.
    static let basisMax = 100
    /// How long an answer is kept, at most.
    static let answerSeconds = 60
    /// The age at which an answer is read again, or forgotten when no caller wants it.
    static let refreshSeconds = 50
    /// How long after a lookup an answer is wanted: it is read again when it does not hold.
    static let wantedSeconds = 30
    /// The most answers that are read again together: looks wait for them.
    static let refreshesMax = 32
    /// The most answers that wait to be read again; beyond that, the earliest ones are read at the next lookup.
    static let dueMax = 10_000

    /// The start of a read or a look, which knows all changes until then.
    struct Mark: Sendable {
        /// The look since which changes are wanted; nil for changes from now on.
        let look: RightLook?
        fileprivate let looks: Int
        fileprivate let time: ContinuousClock.Instant
    }

    private struct Answer {
        var rights: Rights
        /// The number of looks when its read began, or when a look reported its clocks.
        var looks: Int
        let readSince: ContinuousClock.Instant
        /// When it was read, or when the look began that reported its clocks; an earlier look may report older clocks.
        var isAsOf: ContinuousClock.Instant
        /// When a caller last wanted it.
        var askedAt: ContinuousClock.Instant
    }

    private typealias Read = (customer: CustomerName, readSince: ContinuousClock.Instant)
    private typealias Place = Dictionary<CustomerName, Answer>.Index

    private var answers: [CustomerName: Answer] = [:]
    private var answersInOrder: Deque<Read> = []
    /// The customer whose answer depends on a thing; the latest of several, as after a merger.
    private var restingOn: [RightBasis: CustomerName] = [:]
    /// The customers whose wanted answers did not hold when last examined.
    private var due: Deque<CustomerName> = []
    private var refreshes = DutyCycle()
    private var reported = ReportedChanges()
    private var look: RightLook?
    /// The database's clock at the last look.
    private var lookedAt = Instant(milliseconds: .min)
    /// When the last look began; nil before the first, and when its changes are forgotten.
    private var lookedSince: ContinuousClock.Instant?
    /// When a caller last received the order to look before it was necessary.
    private var lookWantedSince: ContinuousClock.Instant?

    /// How many answers are kept.
    var count: Int { answers.count }

    /// Begins a read or a look at `now`.
    func begin(at now: ContinuousClock.Instant) -> Mark { Mark(look: look, looks: reported.looks, time: now) }

    /// Takes in the changes from a look that began at `mark`.
    mutating func note(_ changes: RightChanges, lookingSince mark: Mark) {
        look = changes.look
        lookedAt = changes.time
        lookedSince = mark.time
        reported.note(changes, lookedSince: mark.time)
        for customer in changes.named.compactMap({ restingOn[$0] }) { appendIfDue(customer, at: mark.time) }
    }

    /// Forgets every answer, and those that are being read.
    mutating func forget() {
        reported.forget()
        lookedSince = nil
    }

    /// Whether it is time to look, so that no caller has to wait for it; true once for each time.
    mutating func wantsLook(at now: ContinuousClock.Instant) -> Bool {
        let early = Duration.milliseconds(Self.behindMillisecondsMax / 4)
        guard let lookedSince, now - lookedSince > early, now - (lookWantedSince ?? lookedSince) > early else {
            return false
        }
        lookWantedSince = now
        return true
    }

    /// Returns a customer's entitlements at `now`, if the last look was just before; nil when a new look is necessary.
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
        guard let place = answers.index(forKey: customer) else { return nil }
        answers.values[place].askedAt = mark.time
        return holds(place, at: time, mark.time) ? answers.values[place].rights : nil
    }

    /// Whether an answer holds at `time` by the database's clock and at `now` by this process's clock, with the clocks
    /// from checks.
    private mutating func holds(_ place: Place, at time: Instant, _ now: ContinuousClock.Instant) -> Bool {
        let answer = answers.values[place]
        guard !Self.isOver(answer.readSince, at: now), answer.rights.lastsUntil.map({ $0 > time }) ?? true,
            reported.holds(answer.rights.basis, since: answer.looks)
        else { return false }
        let checks = reported.checks(of: answer.rights.basis, since: answer.looks)
        return checks.isEmpty || take(checks, into: place)
    }

    /// Takes the clocks of checks into an answer, if they are certainly newer and their subject is certain.
    private mutating func take(_ checks: [ReportedChanges.Check], into place: Place) -> Bool {
        var answer = answers.values[place]
        guard !answer.rights.isTied, checks.allSatisfy({ $0.lookedSince >= answer.isAsOf }) else { return false }
        answer.looks = reported.looks
        answer.isAsOf = checks.map(\.lookedSince).max() ?? answer.isAsOf
        answer.rights = answer.rights.checked(checks.map(\.clocks))
        answers.values[place] = answer
        return true
    }

    /// Keeps entitlements whose read began at `mark` and ended at `now`, for a caller or as a refresh. A later read
    /// stays.
    mutating func keep(
        _ rights: Rights, of customer: CustomerName, readSince mark: Mark, until now: ContinuousClock.Instant,
        asRefresh: Bool = false
    ) {
        let known = answers[customer]
        let askedAt = asRefresh ? known?.askedAt : mark.time
        if let known, known.readSince > mark.time { return }
        remove(customer)
        guard let askedAt, (1...Self.basisMax).contains(rights.basis.count) else { return }
        answers[customer] = Answer(
            rights: rights, looks: mark.looks, readSince: mark.time, isAsOf: now, askedAt: askedAt)
        for thing in rights.basis { restingOn[thing] = customer }
        answersInOrder.append((customer, mark.time))
        for _ in 0..<2 { removeOldAnswer(at: mark.time) }
        appendIfDue(customer, at: now)
    }

    private mutating func removeOldAnswer(at time: ContinuousClock.Instant) {
        guard let oldest = answersInOrder.first else { return }
        let isCurrent = isCurrent(oldest)
        guard !isCurrent || Self.isOver(oldest.readSince, at: time) || answersInOrder.count > Self.answersMax else {
            return
        }
        answersInOrder.removeFirst()
        if isCurrent { remove(oldest.customer) }
    }

    private mutating func remove(_ customer: CustomerName) {
        guard let answer = answers.removeValue(forKey: customer) else { return }
        for thing in answer.rights.basis where restingOn[thing] == customer { restingOn[thing] = nil }
    }

    /// Begins a refresh: names wanted answers that do not hold, or not for much longer, so that they are read again
    /// before a caller needs them. Names none during a refresh, nor after it for as long as it took.
    mutating func beginRefresh(at now: ContinuousClock.Instant) -> [CustomerName] {
        guard refreshes.mayBegin(at: now) else { return [] }
        var named: Set<CustomerName> = []
        while named.count < Self.refreshesMax, let customer = due.popFirst() {
            if isDue(customer, at: now) { named.insert(customer) }
        }
        for customer in aging(at: now) where named.count < Self.refreshesMax { named.insert(customer) }
        if !named.isEmpty { refreshes.begin(at: now) }
        return Array(named)
    }

    /// Ends a refresh of customers, whatever became of it.
    mutating func endRefresh(of customers: [CustomerName], at now: ContinuousClock.Instant) {
        refreshes.end(at: now)
        for customer in customers { appendIfDue(customer, at: now) }
    }

    private mutating func appendIfDue(_ customer: CustomerName, at now: ContinuousClock.Instant) {
        guard isDue(customer, at: now) else { return }
        due.append(customer)
        if due.count > Self.dueMax { due.removeFirst() }
    }

    /// Whether an answer is wanted and does not hold.
    private mutating func isDue(_ customer: CustomerName, at now: ContinuousClock.Instant) -> Bool {
        guard let place = answers.index(forKey: customer) else { return false }
        return isWanted(answers.values[place], at: now) && !holds(place, at: lookedAt, now)
    }

    /// Returns those of the oldest answers that end soon and are wanted; forgets some that no caller wants.
    private mutating func aging(at now: ContinuousClock.Instant) -> [CustomerName] {
        for _ in 0..<Self.refreshesMax {
            guard let oldest = answersInOrder.first, isAging(oldest, at: now), !isWanted(oldest, at: now) else { break }
            answersInOrder.removeFirst()
            if isCurrent(oldest) { remove(oldest.customer) }
        }
        return answersInOrder.prefix(Self.refreshesMax)
            .filter { isAging($0, at: now) && isWanted($0, at: now) }
            .map(\.customer)
    }

    private func isAging(_ read: Read, at now: ContinuousClock.Instant) -> Bool {
        now - read.readSince >= .seconds(Self.refreshSeconds)
    }

    private func isCurrent(_ read: Read) -> Bool { answers[read.customer]?.readSince == read.readSince }

    private func isWanted(_ read: Read, at now: ContinuousClock.Instant) -> Bool {
        guard let answer = answers[read.customer], answer.readSince == read.readSince else { return false }
        return isWanted(answer, at: now)
    }

    private func isWanted(_ answer: Answer, at now: ContinuousClock.Instant) -> Bool {
        now - answer.askedAt < .seconds(Self.wantedSeconds)
    }

    private static func isOver(_ readSince: ContinuousClock.Instant, at time: ContinuousClock.Instant) -> Bool {
        time - readSince >= .seconds(answerSeconds)
    }
}
