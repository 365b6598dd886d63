import Ledger

/// The division of one batch among apps, in equal shares.
enum BatchPlan {
    /// Returns how many receipts of each app go into a batch of at most `receiptsMax`.
    ///
    /// The other apps get the share that one app does not need, so that a large app never keeps a small one waiting.
    /// When there are more apps than places they take turns; `first` is the app whose turn it is.
    static func shares(of due: [Int32: Int], receiptsMax: Int, first: Int32 = .min) -> [Int32: Int] {
        let inLine = due.filter { $0.value > 0 }.keys.sorted()
        var waiting = inLine.filter { $0 >= first } + inLine.filter { $0 < first }
        var shares: [Int32: Int] = [:]
        var room = receiptsMax
        while room > 0, !waiting.isEmpty {
            let each = max(1, room / waiting.count)
            for app in waiting.prefix(room) {
                let share = min(each, due[app, default: 0] - shares[app, default: 0])
                shares[app, default: 0] += share
                room -= share
            }
            waiting.removeAll { shares[$0, default: 0] >= due[$0, default: 0] }
        }
        return shares
    }

    /// Returns the app that is first in the next batch: the one after the last app served, counted round from `first`.
    static func next(after shares: [Int32: Int], first: Int32) -> Int32 {
        let served = shares.keys
        guard let last = served.filter({ $0 < first }).max() ?? served.max() else { return first }
        return last &+ 1
    }
}

/// The turns of the lanes within an app. Of every ten calls seven are reserved for receipts that a customer waits for,
/// and every other lane has one.
///
/// The turn of a lane with nothing due goes to the most urgent lane, so that nothing is wasted and nothing starves.
/// Turns continue from batch to batch, because with a small budget a batch is a single call.
struct LaneTurns: Sendable {
    /// One round of turns.
    static let order: [Lane] = [
        .new, .expiring, .retry, .new, .expiring, .imported, .new, .expiring, .sweep, .expiring,
    ]

    private var given: [Int32: Int] = [:]

    /// Divides each app's granted calls among its lanes.
    mutating func quotas(of due: [DueReceipts], granted: [Int32: Int]) -> [DueReceipts] {
        Dictionary(grouping: due, by: \.appID).sorted { $0.key < $1.key }.flatMap { app, lanes in
            let byUrgency = Lane.allCases.flatMap { lane in lanes.filter { $0.lane == lane } }
            return share(granted[app, default: 0], of: app, among: byUrgency)
        }
    }

    private mutating func share(_ calls: Int, of app: Int32, among lanes: [DueReceipts]) -> [DueReceipts] {
        var left = lanes.map(\.receipts)
        for _ in 0..<min(calls, left.reduce(0, +)) {
            let turn = Self.order[given[app, default: 0] % Self.order.count]
            given[app, default: 0] += 1
            let called = lanes.indices.first { lanes[$0].lane == turn && left[$0] > 0 }
            guard let served = called ?? left.firstIndex(where: { $0 > 0 }) else { break }
            left[served] -= 1
        }
        return zip(lanes, left).compactMap { lane, left in
            guard left < lane.receipts else { return nil }
            return DueReceipts(appID: app, lane: lane.lane, receipts: lane.receipts - left)
        }
    }
}
