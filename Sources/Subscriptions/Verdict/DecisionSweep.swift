/// Follows the input of the decision table through time, so that a whole subscription life is decided in n log n.
///
/// Equivalent to `DecisionTable.view(at:)` for instants that never go back.
struct DecisionSweep {
    private let table: DecisionTable
    /// The periods that stop counting, ordered by the instant at which they do.
    private let ending: [Int]
    private var view = DecisionTable.View()
    private var live = LatestFirst()
    private var underWay = LatestFirst()
    private var visible = 0
    private var begun = 0
    private var ended = 0

    init(_ table: DecisionTable) {
        self.table = table
        ending = table.stretches.indices.filter { table.stretches[$0].voidAt != nil }.sorted { left, right in
            let (first, second) = (table.stretches[left].voidAt, table.stretches[right].voidAt)
            return first.map { first in second.map { first < $0 } ?? false } ?? false
        }
    }

    /// Returns the view at an instant, which must not be earlier than the previous call's.
    mutating func view(at instant: Instant) -> DecisionTable.View {
        let stretches = table.stretches
        while ended < ending.count, stretches[ending[ended]].isVoid(at: instant) {
            if ending[ended] < visible { table.note(ending[ended], in: &view) }
            ended += 1
        }
        while visible < stretches.count, table.isVisible(visible, at: instant) {
            if stretches[visible].isVoid(at: instant) {
                table.note(visible, in: &view)
            } else {
                live.insert(visible, endingAt: stretches[visible].expiresAt)
            }
            visible += 1
        }
        while begun < stretches.count, stretches[begun].purchasedAt <= instant {
            underWay.insert(begun, endingAt: stretches[begun].expiresAt)
            begun += 1
        }
        view.head = live.first { !stretches[$0].isVoid(at: instant) }
        view.running = underWay.first { !stretches[$0].isVoid(at: instant) && instant < stretches[$0].expiresAt }
        return view
    }
}

/// A binary heap of periods by their end, the latest first; of two with the same end, the one that starts later.
private struct LatestFirst {
    private var entries: [(end: Instant, index: Int)] = []

    mutating func insert(_ index: Int, endingAt end: Instant) {
        entries.append((end, index))
        var child = entries.count - 1
        while child > 0, entries[(child - 1) / 2] < entries[child] {
            entries.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Returns the first period that counts. Removes those before it, which never count again.
    mutating func first(where counts: (Int) -> Bool) -> Int? {
        while let top = entries.first {
            if counts(top.index) { return top.index }
            removeFirst()
        }
        return nil
    }

    private mutating func removeFirst() {
        entries.swapAt(0, entries.count - 1)
        entries.removeLast()
        var parent = 0
        while true {
            var latest = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < entries.count {
                if entries[latest] < entries[child] { latest = child }
            }
            guard latest != parent else { return }
            entries.swapAt(parent, latest)
            parent = latest
        }
    }
}
