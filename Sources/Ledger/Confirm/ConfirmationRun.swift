import Postgres
import SQL
import Subscriptions

/// One confirmation in its transaction: it locks, decides by the clocks and writes. Its lock order is that of
/// settlements.
struct ConfirmationRun {
    private let recordedMicroseconds: Int64
    private let confirmed: [Confirmed]

    /// The result of one receipt's equal answer.
    private struct Confirmed {
        let answer: EqualAnswer
        let next: Instant
        let lane: Lane
        let subscriptions: [(id: Int64, next: Instant)]
        let purchases: [ConfirmedPurchase]
    }

    init(_ answers: [EqualAnswer], in transaction: Transaction) throws {
        let known = try LockedReceipts(answers, in: transaction)
        recordedMicroseconds = known.recordedMicroseconds
        confirmed = answers.compactMap { Self.confirmed($0, known) }
    }

    private static func confirmed(_ answer: EqualAnswer, _ known: LockedReceipts) -> Confirmed? {
        let receipt = answer.claim.receiptID.number
        guard let environment = answer.claim.environment, let answered = known.answered[receipt],
            let inputs = known.inputs(of: receipt),
            let bought = answered.unchanged(known.purchases, asOf: answer.asOf)
        else { return nil }
        let now = Instant(microseconds: known.recordedMicroseconds)
        let policy = answer.claim.app.policy(for: environment)
        func next(_ inputs: [ScheduleInput], _ boughtAt: [Instant] = []) -> Instant? {
            let plan = nextCheck(
                for: inputs, purchasedAt: boughtAt, environment: environment, now: now, seed: answer.claim.seed,
                policy: policy)
            return if case .at(let instant) = plan { instant } else { nil }
        }
        var subscriptions: [(id: Int64, next: Instant)] = []
        for polled in inputs {
            guard polled.lasts(until: answer.asOf, now: now), let instant = next([polled.input]) else { return nil }
            subscriptions.append((polled.subscriptionID, instant))
        }
        let polled = bought.filter { $0.polledBy == receipt }
        return next(inputs.map(\.input), polled.map(\.purchasedAt)).map { earliest in
            Confirmed(
                answer: answer, next: earliest, lane: Lane(of: inputs.map(\.input), next: earliest),
                subscriptions: subscriptions,
                purchases: bought.map { purchase in
                    let isPolled = purchase.polledBy == receipt
                    return ConfirmedPurchase(
                        rowID: purchase.rowID, asOf: answer.asOf, isPolled: isPolled,
                        nextCheckAt: isPolled ? next([], [purchase.purchasedAt]) : nil)
                })
        }
    }

    /// Moves the clocks and returns the leases; returns the confirmed receipts.
    func write(in transaction: Transaction) throws -> Set<ReceiptID> {
        guard let worker = confirmed.first?.answer.claim.worker else { return [] }
        let subscriptions = confirmed.flatMap(\.subscriptions)
        let recordedAt = Parameter.timestamptz(microseconds: recordedMicroseconds)
        try transaction.query(
            Queries.confirm,
            [
                .int4(worker.number), recordedAt,
                .int8s(confirmed.map(\.answer.claim.receiptID.number)), .instants(confirmed.map(\.answer.asOf)),
                .instants(confirmed.map(\.next)), .texts(confirmed.map(\.lane.rawValue)),
                .int8s(subscriptions.map(\.id)), .instants(subscriptions.map(\.next)),
            ])
        try writePurchases(at: recordedAt, in: transaction)
        return Set(confirmed.map(\.answer.claim.receiptID))
    }
}

extension ConfirmationRun {
    /// Writes the purchases; one that several receipts contain gets the newest of their clocks.
    private func writePurchases(at recordedAt: Parameter, in transaction: Transaction) throws {
        let purchases = confirmed.flatMap(\.purchases)
        guard !purchases.isEmpty else { return }
        let rows = Dictionary(purchases.map { ($0.rowID, $0) }) { $0.merged(with: $1) }.values
            .sorted { $0.rowID < $1.rowID }
        try transaction.query(
            Queries.confirmPurchases,
            [
                recordedAt, .int8s(rows.map(\.rowID)), .instants(rows.map(\.asOf)), .bools(rows.map(\.isPolled)),
                .instants(rows.map(\.nextCheckAt)),
            ])
    }
}

/// A one-time purchase in an equal answer.
private struct ConfirmedPurchase {
    let rowID: Int64
    let asOf: Instant
    /// Whether the receipt that answered is the purchase's poller.
    let isPolled: Bool
    /// The next check of the poller; nil when no change of the purchase is expected any more.
    let nextCheckAt: Instant?

    /// Returns the purchase after two answers: the newer clock, the poller's plan.
    func merged(with other: ConfirmedPurchase) -> ConfirmedPurchase {
        ConfirmedPurchase(
            rowID: rowID, asOf: max(asOf, other.asOf), isPolled: isPolled || other.isPolled,
            nextCheckAt: isPolled ? nextCheckAt : other.nextCheckAt)
    }
}

/// The stored data of a confirmation's receipts, locked.
private struct LockedReceipts {
    let answered: [Int64: AnsweredPurchases]
    let purchases: [Int64: KnownPurchase]
    /// The database's clock after the locks were taken.
    let recordedMicroseconds: Int64
    private let polled: [Int64: [Int64]]
    private let standing: [Int64: [PolledScheduleInput]]

    init(_ answers: [EqualAnswer], in transaction: Transaction) throws {
        let schedules = try transaction.query(
            Queries.lockConfirmed,
            [
                .int4(answers.first?.claim.worker.number), .int8s(answers.map(\.claim.receiptID.number)),
                .int8s(answers.map(\.claim.leaseToken)), .byteas(answers.map(\.fingerprint.bytes)),
            ])
        answered = try schedules.reduce(into: [:]) { $0[try $1.int8("receipt_id")] = try AnsweredPurchases(row: $1) }
        polled = try grouped(
            transaction.query(Queries.lockPolled, [.int8s(Array(answered.keys))]), { try $0.int8("subscription_id") },
            by: "polled_by")
        let rows = try transaction.query(Queries.readScheduleInputs, [.int8s(polled.values.flatMap(\.self))])
        standing = try grouped(rows, PolledScheduleInput.init(row:), by: "polled_by")
        let ids = answered.values.flatMap(\.rowIDs)
        let bought = ids.isEmpty ? [] : try transaction.query(Queries.lockConfirmedPurchases, [.int8s(ids)])
        purchases = try bought.reduce(into: [:]) { $0[try $1.int8("purchase_id")] = try KnownPurchase(row: $1) }
        recordedMicroseconds = try (rows.first ?? bought.first)?.timestamptz("recorded_at") ?? 0
    }

    /// Returns the inputs of all subscriptions that a receipt polls; nil when one of them must be read in full.
    func inputs(of receipt: Int64) -> [PolledScheduleInput]? {
        let inputs = standing[receipt] ?? []
        return inputs.count == polled[receipt]?.count ?? 0 ? inputs : nil
    }
}
