import Postgres

/// What looks told, for as long as an answer may be kept that was read before: which answers still hold, and which hold but
/// for their clocks.
///
/// Looks are counted. What is over is removed bit by bit: nobody waits for that.
struct ToldChanges: Sendable {
    /// Things of which is kept what became of them, at most.
    static let thingsMax = 1_000_000
    /// How long that is kept: longer than an answer whose read began before it was told.
    static let seconds = 120

    /// A check that a look told.
    struct Check: Sendable {
        let clocks: RightCheck
        /// Which look.
        let look: Int
        /// When that look began.
        let lookedSince: ContinuousClock.Instant
    }

    /// What became of a thing.
    private struct Told {
        /// The last look that told it had changed; 0 for none.
        var changed = 0
        /// The last check that was told.
        var check: Check?
        var look: Int { max(changed, check?.look ?? 0) }

        /// Takes in a check. Looks may end in another order than they began: which of two checks came last is not known then,
        /// so the thing has changed.
        mutating func note(_ told: Check) {
            guard let known = check, known.lookedSince >= told.lookedSince else {
                check = told
                return
            }
            if known.clocks != told.clocks { changed = told.look }
        }
    }

    /// How many looks there were.
    private(set) var looks = 0
    /// The last look in which everything had changed.
    private var everythingChanged = 0
    private var things: [RightBasis: Told] = [:]
    private var inOrder = Fifo<(basis: RightBasis, look: Int, lookedSince: ContinuousClock.Instant)>()

    /// Takes in what a look that began at `lookedSince` told.
    mutating func note(_ changes: RightChanges, lookedSince: ContinuousClock.Instant) {
        looks += 1
        guard case .these(let changed) = changes.extent else {
            everythingChanged = looks
            return
        }
        let look = looks
        for basis in changed { note(basis, lookedSince) { $0.changed = look } }
        for check in changes.checks {
            let told = Check(clocks: check, look: look, lookedSince: lookedSince)
            note(check.thing, lookedSince) { $0.note(told) }
        }
        guard things.count > Self.thingsMax else { return }
        everythingChanged = looks
        things = [:]
        inOrder = Fifo()
    }

    private mutating func note(
        _ basis: RightBasis, _ lookedSince: ContinuousClock.Instant, _ change: (inout Told) -> Void
    ) {
        change(&things[basis, default: Told()])
        inOrder.append((basis, looks, lookedSince))
        for _ in 0..<2 { removeOldest(at: lookedSince) }
    }

    private mutating func removeOldest(at time: ContinuousClock.Instant) {
        guard let oldest = inOrder.first, time - oldest.lookedSince >= .seconds(Self.seconds) else { return }
        inOrder.removeFirst()
        if things[oldest.basis]?.look == oldest.look { things[oldest.basis] = nil }
    }

    /// Takes everything for changed.
    mutating func forget() {
        looks += 1
        everythingChanged = looks
    }

    /// Whether nothing of it was told to have changed in a look after so many.
    func holds(_ basis: [RightBasis], since looks: Int) -> Bool {
        looks >= everythingChanged && basis.allSatisfy { (things[$0]?.changed ?? 0) <= looks }
    }

    /// The last checks of it that were told in looks after so many.
    func checks(of basis: [RightBasis], since looks: Int) -> [Check] {
        basis.compactMap { things[$0]?.check }.filter { $0.look > looks }
    }
}
