import Postgres
import SQL
import Subscriptions

/// An answer that says what the last one about its receipt said, at a later clock.
public struct EqualAnswer: Sendable {
    /// The claim.
    public let claim: Claim
    /// The fingerprint that both answers have.
    public let fingerprint: Fingerprint
    /// Apple's clock.
    public let asOf: Instant

    /// An answer equal to the last one; nil when it differs.
    public init?(to claim: Claim, fingerprint: Fingerprint, asOf: Instant) {
        guard claim.fingerprint == fingerprint else { return nil }
        self.claim = claim
        self.fingerprint = fingerprint
        self.asOf = asOf
    }
}

extension SubscriptionLedger {
    /// Settles answers that are equal to the last ones, at a fraction of the cost: clocks move, leases are given back.
    ///
    /// Returns the receipts this was enough for. The others have to be settled in full: time alone has changed something,
    /// somebody uploaded the receipt, another receipt spoke of its subscription since, or the lease is lost.
    public func confirm(_ answers: [EqualAnswer], by worker: WorkerID, speedup: Int) async throws -> Set<ReceiptID> {
        guard !answers.isEmpty else { return [] }
        do {
            return try await database.transaction { transaction in
                try ConfirmationRun(answers, worker: worker, speedup: speedup, in: transaction).write(in: transaction)
            }
        } catch let error as DatabaseError where error.isSerializationFailure {
            return []
        }
    }
}

/// One confirmation in its transaction: locks, decides by the clocks, writes. Locks are taken in the order of settlements.
struct ConfirmationRun {
    private let worker: WorkerID
    private let recordedMicroseconds: Int64
    private let confirmed: [Confirmed]

    /// What one receipt's equal answer comes to.
    private struct Confirmed {
        let answer: EqualAnswer
        let next: Instant
        let lane: Lane
        let subscriptions: [(id: Int64, next: Instant)]
    }

    init(_ answers: [EqualAnswer], worker: WorkerID, speedup: Int, in transaction: Transaction) throws {
        self.worker = worker
        let leased = try transaction.query(
            Queries.lockConfirmed,
            [
                .int4(worker.number), .int8s(answers.map(\.claim.receiptID.number)),
                .int8s(answers.map(\.claim.leaseToken)), .byteas(answers.map(\.fingerprint.bytes)),
            ])
        let receipts = try leased.map { try $0.int8("receipt_id") }
        let polled = try grouped(
            transaction.query(Queries.lockPolled, [.int8s(receipts)]), { try $0.int8("subscription_id") },
            by: "polled_by")
        let rows = try transaction.query(Queries.readOutlooks, [.int8s(polled.values.flatMap(\.self))])
        let now = try rows.first?.timestamptz("recorded_at") ?? 0
        let outlooks = try grouped(rows, PolledOutlook.init(row:), by: "polled_by")
        recordedMicroseconds = now
        confirmed = answers.compactMap { answer in
            let receipt = answer.claim.receiptID.number
            guard let known = outlooks[receipt], known.count == polled[receipt]?.count else { return nil }
            return Self.confirmed(answer, known, at: Instant(microseconds: now), speedup: speedup)
        }
    }

    private static func confirmed(
        _ answer: EqualAnswer, _ outlooks: [PolledOutlook], at now: Instant, speedup: Int
    ) -> Confirmed? {
        guard let environment = answer.claim.environment else { return nil }
        let policy = answer.claim.app.policy(for: environment, speedup: speedup)
        var next: [(id: Int64, next: Instant)] = []
        for polled in outlooks {
            guard polled.lasts(until: answer.asOf, now: now),
                case .at(let instant) = nextCheck(
                    for: polled.outlook, environment: environment, now: now, seed: answer.claim.seed, policy: policy)
            else { return nil }
            next.append((polled.subscriptionID, instant))
        }
        return next.map(\.next).min().map { earliest in
            Confirmed(
                answer: answer, next: earliest, lane: Lane(of: outlooks.map(\.outlook), next: earliest),
                subscriptions: next)
        }
    }

    /// Moves the clocks and gives the leases back; returns the receipts.
    func write(in transaction: Transaction) throws -> Set<ReceiptID> {
        guard !confirmed.isEmpty else { return [] }
        let subscriptions = confirmed.flatMap(\.subscriptions)
        try transaction.query(
            Queries.confirm,
            [
                .int4(worker.number), .timestamptz(microseconds: recordedMicroseconds),
                .int8s(confirmed.map(\.answer.claim.receiptID.number)), .instants(confirmed.map(\.answer.asOf)),
                .instants(confirmed.map(\.next)), .int2s(confirmed.map(\.lane.rawValue)),
                .int8s(subscriptions.map(\.id)), .instants(subscriptions.map(\.next)),
            ])
        return Set(confirmed.map(\.answer.claim.receiptID))
    }
}
