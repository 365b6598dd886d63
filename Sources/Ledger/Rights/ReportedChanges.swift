import DequeModule

/// The changes from looks, kept as long as an answer that was read before them: which answers still hold, and which
/// hold except for their clocks.
///
/// Looks are counted. Old changes are removed bit by bit, which delays no caller.
struct ReportedChanges: Sendable {
    /// The most things whose changes are kept.
    static let thingsMax = 1_000_000
    /// How long changes are kept: longer than an answer whose read began before them.
    static let seconds = 120

    /// A check that a look reported.
    struct Check: Sendable {
        let clocks: RightCheck
        /// The number of the look.
        let look: Int
        /// When that look began.
        let lookedSince: ContinuousClock.Instant
    }

    /// The last change and check of a thing.
    private struct Reported {
        /// The last look that reported a change; 0 for none.
        var changed = 0
        /// The last reported check.
        var check: Check?
        var look: Int { max(changed, check?.look ?? 0) }

        /// Takes in a check. Looks may end in another order than they began; then it is not known which of two checks
        /// came last, so the thing counts as changed.
        mutating func note(_ reported: Check) {
            guard let known = check, known.lookedSince >= reported.lookedSince else {
                check = reported
                return
            }
            if known.clocks != reported.clocks { changed = reported.look }
        }
    }

    /// How many looks there were.
    private(set) var looks = 0
    /// The last look that reported everything as changed.
    private var everythingChanged = 0
    private var things: [RightBasis: Reported] = [:]
    private var inOrder: Deque<(basis: RightBasis, look: Int, lookedSince: ContinuousClock.Instant)> = []

    /// Takes in the changes from a look that began at `lookedSince`.
    mutating func note(_ changes: RightChanges, lookedSince: ContinuousClock.Instant) {
        looks += 1
        guard case .these(let changed) = changes.extent else {
            everythingChanged = looks
            return
        }
        let look = looks
        for basis in changed { note(basis, lookedSince) { $0.changed = look } }
        for check in changes.checks {
            let reported = Check(clocks: check, look: look, lookedSince: lookedSince)
            note(check.thing, lookedSince) { $0.note(reported) }
        }
        guard things.count > Self.thingsMax else { return }
        everythingChanged = looks
        things = [:]
        inOrder = []
    }

    private mutating func note(
        _ basis: RightBasis, _ lookedSince: ContinuousClock.Instant, _ change: (inout Reported) -> Void
    ) {
        change(&things[basis, default: Reported()])
        inOrder.append((basis, looks, lookedSince))
        for _ in 0..<2 { removeOldest(at: lookedSince) }
    }

    private mutating func removeOldest(at time: ContinuousClock.Instant) {
        guard let oldest = inOrder.first, time - oldest.lookedSince >= .seconds(Self.seconds) else { return }
        inOrder.removeFirst()
        if things[oldest.basis]?.look == oldest.look { things[oldest.basis] = nil }
    }

    /// Counts everything as changed.
    mutating func forget() {
        looks += 1
        everythingChanged = looks
    }

    /// Whether no look after number `looks` reported a change of the basis.
    func holds(_ basis: [RightBasis], since looks: Int) -> Bool {
        looks >= everythingChanged && basis.allSatisfy { (things[$0]?.changed ?? 0) <= looks }
    }

    /// Returns the last checks of the basis from looks after number `looks`.
    func checks(of basis: [RightBasis], since looks: Int) -> [Check] {
        basis.compactMap { things[$0]?.check }.filter { $0.look > looks }
    }
}
