import Subscriptions
import Tracking

/// What a call was for.
enum CallReason: String, CaseIterable {
    case newReceipt = "a new receipt", running = "running subscriptions", retry = "failed charges",
        over = "subscriptions that are over"

    init(_ input: ScheduleInput, isOver: Bool) {
        switch input.state {
        case .billingRetry, .gracePeriod: self = isOver ? .over : .retry
        case .active, .awaitingRenewal, .expired, .revoked: self = isOver ? .over : .running
        }
    }
}

/// The calls of a simulated year, and those that asking daily would have taken.
struct YearCalls {
    /// Calls on each day of the year.
    private(set) var onDay = [Int](repeating: 0, count: Int(SimulatedYear.days))
    private(set) var byKind: [PeriodKind: Int] = [:]
    private(set) var byReason: [CallReason: Int] = [:]
    /// Days in the year, summed over the subscriptions that were not over.
    private(set) var runningDays = 0.0
    /// Days in the year, summed over the subscriptions that the schedule followed: it would see each one come back.
    private(set) var followedDays = 0.0
    /// Days in the year, summed over every receipt that was ever stored.
    private(set) var storedDays = 0.0

    var all: Int { onDay.reduce(0, +) }

    mutating func countCall(at instant: Instant, kind: PeriodKind, why: CallReason) {
        guard instant >= SimulatedYear.begin else { return }
        onDay[Int((instant - SimulatedYear.begin).milliseconds / 86_400_000)] += 1
        byKind[kind, default: 0] += 1
        byReason[why, default: 0] += 1
    }

    mutating func countStored(from instant: Instant) {
        storedDays += Self.daysInYear(from: instant, to: SimulatedYear.end)
    }

    mutating func countNaive(from start: Instant, running: Instant, followed: Instant) {
        runningDays += Self.daysInYear(from: start, to: running)
        followedDays += Self.daysInYear(from: start, to: max(running, followed))
    }

    private static func daysInYear(from start: Instant, to end: Instant) -> Double {
        let (first, last) = (max(start, SimulatedYear.begin), min(end, SimulatedYear.end))
        return Double(max(0, (last - first).milliseconds)) / 86_400_000
    }
}

/// How old the newest answer was, over all the time that subscriptions were running.
struct Staleness {
    /// The width of a class of ages, in hours, and how many there are.
    static let stepHours: Int64 = 6
    static let steps = 40 * 4
    /// Days that answers were so old, by class.
    private(set) var days = [Double](repeating: 0, count: steps)
    private(set) var oldestDays = 0.0

    /// Between two checks an answer has every age up to the time between them for as long.
    mutating func add(from start: Instant, to end: Instant, kind: PeriodKind) {
        guard start >= SimulatedYear.begin, end > start else { return }
        let most = Double((end - start).milliseconds) / 86_400_000
        oldestDays = max(oldestDays, most)
        let width = Double(Self.stepHours) / 24
        for step in 0..<Self.steps where Double(step) * width < most {
            days[step] += min(most, Double(step + 1) * width) - Double(step) * width
        }
    }

    /// The age in days that answers did not exceed for a part of the time.
    func days(atPart part: Double) -> Double {
        var left = days.reduce(0, +) * part
        for (step, share) in days.enumerated() {
            if left <= share { return (Double(step) + left / max(share, .ulpOfOne)) * Double(Self.stepHours) / 24 }
            left -= share
        }
        return oldestDays
    }
}

/// How soon news was known.
struct YearNews {
    /// Seconds from news until it was known, but not before it mattered.
    private(set) var delays: [Turn.News: [Double]] = [:]

    /// How the end of a period came out: seconds after that end.
    var outcomes: [Double] { delays.filter(\.key.isOutcome).values.flatMap(\.self).sorted() }

    /// A renewal matters from the moment at which access would have ended without it.
    mutating func tell(_ turn: Turn, at: Instant) {
        guard let news = turn.news, turn.at >= SimulatedYear.begin else { return }
        let matters = news == .renewed ? max(turn.at, turn.input.headStartsAt) : turn.at
        delays[news, default: []].append(max(0, Double((at - matters).milliseconds) / 1000))
    }
}
