import Subscriptions

/// A year of checks by the schedule alone: no database, no App Store, the pure functions only.
struct SimulatedYear {
    static let days: Int64 = 365
    /// Before the year begins everything has been running for some time.
    static let runUpDays: Int64 = 60
    private static let begin = Instant(milliseconds: 1_767_225_600_000)
    private static var end: Instant { begin + .days(days) }

    /// Calls on each day of the year.
    private(set) var callsOnDay = [Int](repeating: 0, count: Int(days))
    /// Calls that asking about every subscription that is not over once a day takes, and about every receipt ever stored.
    private(set) var naiveCalls = 0
    private(set) var naiveCallsOfAll = 0
    /// Seconds from news until it was known, but not before it mattered.
    private(set) var delays: [Turn.News: [Double]] = [:]
    /// The longest time between two checks, by what was known after the first, in seconds.
    private(set) var longestGaps: [State: Double] = [:]
    private(set) var callsByKind: [PeriodKind: Int] = [:]
    private var receipts: UInt64 = 0

    /// A year of as many subscribers, each replaced by another when he leaves.
    init(subscribers: Int, seed: UInt64) {
        var random = SplitMix(state: seed)
        for kind in PeriodKind.allCases {
            for _ in 0..<(subscribers * kind.share / 100) {
                var next: Instant? = Self.begin - Delay.days(kind.days).times(Double.random(in: 0..<1, using: &random))
                while let start = next, start < Self.end {
                    let life = SimulatedLife(kind, from: start, until: Self.end + .days(400), using: &random)
                    live(life, from: start)
                    next = life.endsAt
                }
            }
        }
    }

    var calls: Int { callsOnDay.reduce(0, +) }

    private mutating func live(_ life: SimulatedLife, from start: Instant) {
        receipts += 1
        countNaive(life, from: start)
        let policy = Policy.standard(for: .production)
        var at = start
        var known = 0
        while at < Self.end {
            if at >= Self.begin {
                callsOnDay[Int((at - Self.begin).milliseconds / 86_400_000)] += 1
                callsByKind[life.kind, default: 0] += 1
            }
            while known < life.turns.count, life.turns[known].at <= at {
                tell(life.turns[known], at: at, isFirst: known == 0)
                known += 1
            }
            guard let turn = life.turn(at: at) else { return }
            let plan = nextCheck(for: [turn.outlook], environment: .production, now: at, seed: receipts, policy: policy)
            guard case .at(let next) = plan else { return }
            if at >= Self.begin, next < Self.end {
                let gap = Double((next - at).milliseconds) / 1000
                longestGaps[turn.outlook.state] = max(longestGaps[turn.outlook.state] ?? 0, gap)
            }
            at = next
        }
    }

    /// A renewal matters from the moment at which access would have ended without it.
    private mutating func tell(_ turn: Turn, at: Instant, isFirst: Bool) {
        guard !isFirst, turn.at >= Self.begin else { return }
        let matters = turn.news == .renewed ? max(turn.at, turn.outlook.headStartsAt) : turn.at
        delays[turn.news, default: []].append(max(0, Double((at - matters).milliseconds) / 1000))
    }

    private mutating func countNaive(_ life: SimulatedLife, from start: Instant) {
        let first = max(start, Self.begin)
        let last = min(life.endsAt ?? Self.end, Self.end)
        naiveCalls += Int(max(0, (last - first).milliseconds) / 86_400_000)
        naiveCallsOfAll += Int(max(0, (Self.end - first).milliseconds) / 86_400_000)
    }

    /// The moments at which one undisturbed subscription of a kind is asked about in its first days, in days.
    static func moments(of kind: PeriodKind, days: Double) -> [Double] {
        var random = SplitMix(state: 4)
        let life = SimulatedLife(undisturbed: kind, from: begin, days: Int64(days), using: &random)
        var moments: [Double] = []
        var at = begin
        while at < begin + Delay.days(1).times(days), let turn = life.turn(at: at) {
            moments.append(Double((at - begin).milliseconds) / 86_400_000)
            let policy = Policy.standard(for: .production)
            let plan = nextCheck(for: [turn.outlook], environment: .production, now: at, seed: 1, policy: policy)
            guard case .at(let next) = plan else { break }
            at = next
        }
        return moments
    }
}

extension SimulatedLife {
    /// A life in which every charge goes through.
    init(undisturbed kind: PeriodKind, from start: Instant, days: Int64, using random: inout some RandomNumberGenerator)
    {
        self.kind = kind
        endsAt = nil
        turns = (0...(days / kind.days + 1)).map { number in
            let head = start + .days(number * kind.days)
            let outlook = Outlook(
                state: .active, reason: nil, since: head, until: head + .days(kind.days),
                accessEndsAt: head + .days(kind.days), expiresAt: head + .days(kind.days), headStartsAt: head,
                renewalExpected: true)
            return Turn(at: number == 0 ? head : head - .hours(6), news: .renewed, outlook: outlook)
        }
    }
}

/// Random numbers that a printed seed repeats (SplitMix64).
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
