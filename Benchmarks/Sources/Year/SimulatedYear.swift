import Ledger
import Subscriptions

/// A year of checks by the schedule alone: no database, no App Store, the pure functions only.
struct SimulatedYear {
    static let days: Int64 = 365
    /// Before the year begins everything has been running for longer than those who left are asked about.
    private static let runUpDays: Int64 = 400
    static let begin = Instant(milliseconds: 1_767_225_600_000)
    static var end: Instant { begin + .days(days) }

    let mix: SubscriberMix
    private let policy: Policy
    private(set) var calls = YearCalls()
    private(set) var news = YearNews()
    private(set) var staleness = Staleness()
    private var receipts: UInt64 = 0

    /// A year of as many subscribers, each replaced by another when he leaves.
    /// Refund checks are `stretch` times as far apart, as trusted notifications make them.
    init(_ mix: SubscriberMix, subscribers: Int, seed: UInt64, stretch: Int = 1) {
        self.mix = mix
        var policy = Policy.standard(for: .production)
        (policy.sweepStretch, policy.isSweepTrusted) = (stretch, stretch > 1)
        self.policy = policy
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
    /// Trusted notifications report each turn, and the check that would have asked for it moves on.
    private mutating func live(_ life: SimulatedLife) {
        var uploads = life.uploads[...]
        var turns = life.turns[...]
        var known: Turn?
        var planned: Instant?
        var askedAt: Instant?
        var lane = Lane.new
        while let at = [planned, uploads.first, reported(turns, askedAt)].compactMap(\.self).min(), at < Self.end {
            let isNew = uploads.first == at
            let isCheck = isNew || planned == at
            if isNew {
                uploads.removeFirst()
                receipts += 1
                calls.countStored(from: at)
            }
            var hasNewTransaction = false
            while let turn = turns.first, turn.at <= at {
                news.tell(turn, at: at)
                hasNewTransaction = hasNewTransaction || turn.news?.isTransaction == true
                known = turn
                turns.removeFirst()
            }
            guard let known else { return }
            let isOver = life.endsAt.map { at >= $0 } ?? false
            if isCheck {
                let why = isNew ? .newReceipt : CallReason(known.input, isOver: isOver)
                calls.countCall(at: at, kind: life.kind, why: why)
                calls.countServerCalls(at: at, isNew ? .new : lane, hasNewTransaction: hasNewTransaction)
            }
            let plan = nextCheck(
                for: [known.input], environment: .production, now: at, sweptAt: isCheck ? at : askedAt, seed: receipts,
                policy: policy)
            switch plan {
            case .at(let next): (planned, lane) = (next, Lane(of: [known.input], next: next))
            case .retired: planned = nil
            }
            guard isCheck else { continue }
            askedAt = at
            let next = [planned, uploads.first].compactMap(\.self).min() ?? Self.end
            if !isOver { staleness.add(from: at, to: min(next, life.endsAt ?? Self.end), kind: life.kind) }
        }
        guard let start = life.uploads.first else { return }
        calls.countNaive(
            from: start, running: life.endsAt ?? Self.end, followed: planned == nil ? askedAt ?? start : Self.end)
    }

    /// When a notification reports the next turn of a subscription that is known; nil where none is trusted to.
    private func reported(_ turns: ArraySlice<Turn>, _ askedAt: Instant?) -> Instant? {
        guard askedAt != nil, policy.trustsNotifications(about: receipts), let turn = turns.first else { return nil }
        return turn.news == nil ? nil : turn.at
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
