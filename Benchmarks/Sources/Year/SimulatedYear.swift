import Subscriptions
import Tracking

/// A year of checks by the schedule alone: no database, no App Store, the pure functions only.
struct SimulatedYear {
    static let days: Int64 = 365
    /// Before the year begins everything has been running for longer than those who left are asked about.
    private static let runUpDays: Int64 = 400
    static let begin = Instant(milliseconds: 1_767_225_600_000)
    static var end: Instant { begin + .days(days) }

    let mix: SubscriberMix
    private let policy: Policy
    private let isNotified: Bool
    private(set) var calls = YearCalls()
    private(set) var news = YearNews()
    private(set) var staleness = Staleness()
    private var receipts: UInt64 = 0

    /// A year of as many subscribers, each replaced by another when he leaves.
    /// `isNotified`: a notification of each turn asks for checks until one shows the turn.
    init(_ mix: SubscriberMix, subscribers: Int, seed: UInt64, isNotified: Bool = false) {
        self.mix = mix
        policy = Policy.standard(for: .production)
        self.isNotified = isNotified
        var random = SplitMix(state: seed)
        let first = Self.begin - .days(Self.runUpDays)
        for (kind, share) in mix.shares {
            for _ in 0..<(subscribers * share / 100) {
                var next: Instant? = first - Delay.days(kind.days).times(Double.random(in: 0..<1, using: &random))
                while let start = next, start < Self.end {
                    let life = SimulatedLife(kind, from: start, until: Self.end, using: &random)
                    live(life)
                    next = life.endsAt
                }
            }
        }
    }

    /// A receipt is asked about when it comes, from then on in place of the one before, and whenever the schedule says.
    /// A notification asks too, after five seconds; what Apple's servers show only later is asked about again.
    private mutating func live(_ life: SimulatedLife) {
        var uploads = life.uploads[...]
        var turns = life.turns[...]
        var known: Turn?
        var planned: Instant?
        var askedAt: Instant?
        while let at = [planned, uploads.first, wanted(turns, known, askedAt)].compactMap(\.self).min(), at < Self.end {
            let isNew = uploads.first == at
            let isFollowed = !isNew && planned != at
            if isNew {
                uploads.removeFirst()
                receipts += 1
                calls.countStored(from: at)
            }
            while let turn = turns.first, turn.at <= at {
                news.tell(turn, at: at)
                known = turn
                turns.removeFirst()
            }
            guard let known else { return }
            let isOver = life.endsAt.map { at >= $0 } ?? false
            let why = isNew ? .newReceipt : CallReason(known.input, isOver: isOver)
            for _ in 0..<(isFollowed ? Self.callsOfNews(receipts) : 1) {
                calls.countCall(at: at, kind: life.kind, why: why)
            }
            let plan = nextCheck(
                for: [known.input], environment: .production, now: at, seed: receipts, policy: policy)
            switch plan {
            case .at(let next): planned = next
            case .retired: planned = nil
            }
            askedAt = at
            let next = [planned, uploads.first].compactMap(\.self).min() ?? Self.end
            if !isOver { staleness.add(from: at, to: min(next, life.endsAt ?? Self.end), kind: life.kind) }
        }
        guard let start = life.uploads.first else { return }
        calls.countNaive(
            from: start, running: life.endsAt ?? Self.end, followed: planned == nil ? askedAt ?? start : Self.end)
    }

    /// When a notification has the next turn asked about; nil where none comes, or where it waits for the planned check: a
    /// renewal of what is known to run for another hour.
    private func wanted(_ turns: ArraySlice<Turn>, _ known: Turn?, _ askedAt: Instant?) -> Instant? {
        guard isNotified, askedAt != nil, let turn = turns.first, let news = turn.news else { return nil }
        let isAhead = known.map { $0.input.expiresAt > turn.at + .hours(1) } ?? false
        return news.isTransaction && isAhead ? nil : turn.at + .seconds(5)
    }

    /// How many checks it takes until one shows a turn: Apple's lag is even between none and five minutes, and checks come
    /// after five seconds, one more minute and five more.
    private static func callsOfNews(_ number: UInt64) -> Int {
        switch number % 60 {
        case 0: 1
        case 1..<13: 2
        default: 3
        }
    }

    /// The moments at which one undisturbed subscription of a kind is asked about in its first days, in days.
    static func moments(of kind: PeriodKind, days: Double) -> [Double] {
        let life = SimulatedLife(undisturbed: kind, from: begin, days: Int64(days))
        var moments: [Double] = []
        var at = begin
        while at < begin + Delay.days(1).times(days), let turn = life.turns.last(where: { $0.at <= at }) {
            moments.append(Double((at - begin).milliseconds) / 86_400_000)
            let policy = Policy.standard(for: .production)
            let plan = nextCheck(for: [turn.input], environment: .production, now: at, seed: 1, policy: policy)
            guard case .at(let next) = plan else { break }
            at = next
        }
        return moments
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
