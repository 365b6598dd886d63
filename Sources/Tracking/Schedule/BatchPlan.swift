import Ledger

/// How one batch is shared among apps and lanes: apps equally, lanes by urgency.
enum BatchPlan {
    /// The quotas of a batch of at most `receiptsMax` receipts.
    ///
    /// Apps take turns, one receipt each, so that a large app never keeps a small one waiting. Within an app the urgent
    /// lanes come first, except when `sweepFirst`, which the worker sets now and then so that nothing starves.
    static func shares(of due: [DueReceipts], receiptsMax: Int, sweepFirst: Bool) -> [DueReceipts] {
        var left = Dictionary(grouping: due, by: \.appID).mapValues { lanes in lanes.reduce(0) { $0 + $1.receipts } }
        var granted: [Int32: Int] = [:]
        var room = receiptsMax
        while room > 0, left.contains(where: { $0.value > 0 }) {
            for app in left.keys.sorted() where room > 0 && left[app, default: 0] > 0 {
                let share = min(left[app, default: 0], max(1, room / left.count))
                left[app, default: 0] -= share
                granted[app, default: 0] += share
                room -= share
            }
        }
        return quotas(of: due, granted: granted, sweepFirst: sweepFirst)
    }

    /// Fills each app's granted number from its lanes.
    static func quotas(of due: [DueReceipts], granted: [Int32: Int], sweepFirst: Bool) -> [DueReceipts] {
        var granted = granted
        let urgentFirst = due.sorted { $0.lane.rawValue < $1.lane.rawValue }
        let ordered = sweepFirst ? urgentFirst.reversed() : urgentFirst
        return ordered.compactMap { lane in
            let share = min(lane.receipts, granted[lane.appID, default: 0])
            guard share > 0 else { return nil }
            granted[lane.appID, default: 0] -= share
            return DueReceipts(appID: lane.appID, lane: lane.lane, receipts: share)
        }
    }
}
