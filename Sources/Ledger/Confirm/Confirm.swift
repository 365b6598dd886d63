import Postgres
import SQL
import Subscriptions

extension LedgerSettlements {
    /// Settles answers that equal the last ones, at a fraction of the cost: each moves the schedule row of its receipt.
    ///
    /// Returns the receipts that are settled by this. Others need a full settlement: time alone changed something, a
    /// customer uploaded the receipt, another receipt has since reported what it polls, or the lease is lost. A
    /// serialization failure returns none.
    func confirm(_ answers: [EqualAnswer]) async throws -> Set<ReceiptID> {
        // By number, as other writers lock schedule rows: two batches then seldom wait for each other.
        let rows = answers.compactMap(Confirmation.init(of:))
            .sorted { $0.answer.claim.receiptID < $1.answer.claim.receiptID }
        guard let worker = rows.first?.answer.claim.worker else { return [] }
        do {
            return try await database.transaction { transaction in
                let rowsConfirmed = try transaction.query(Queries.confirm, [.int4(worker.number)], rows: rows)
                let confirmed = Set(try rowsConfirmed.map { ReceiptID(try $0.int8("receipt_id")) })
                try Self.moveHistories(
                    of: rows.map(\.answer).filter { confirmed.contains($0.claim.receiptID) }, in: transaction)
                return confirmed
            }
        } catch let error as DatabaseError where error.isSerializationFailure {
            return []
        }
    }

    /// Notes where the Server API's history is read on.
    private static func moveHistories(of answers: [EqualAnswer], in transaction: Transaction) throws {
        let moved = answers.filter { $0.revision != nil }
        guard !moved.isEmpty else { return }
        try transaction.query(
            Queries.moveHistories, [.int8s(moved.map(\.claim.receiptID.number)), .texts(moved.map(\.revision))])
    }
}

/// An equal answer with the plan that follows from it, as a row of `confirm`.
struct Confirmation: Sendable {
    let answer: EqualAnswer
    /// The database's clock by which the next check is planned, and which the answer gets.
    let plannedAt: Instant
    let dueAt: Instant
    let lane: Lane

    /// Plans the next check; nil where the answer has to be settled in full.
    init?(of answer: EqualAnswer) {
        let claim = answer.claim
        let now = claim.databaseNow
        guard let environment = claim.environment, let polled = claim.polled,
            let next = polled.nextCheck(
                in: environment, now: now, seed: claim.seed, policy: claim.app.policy(for: environment))
        else { return nil }
        (self.answer, plannedAt, dueAt, lane) = (answer, now, next.at, next.lane)
    }
}

extension Confirmation: ColumnarRow {
    static let columns: [Column<Confirmation>] = [
        .int8("receipt_id", \.answer.claim.receiptID.number),
        .int8("lease_token", \.answer.claim.leaseToken),
        .bytea("last", \.answer.last.bytes),
        .bytea("fingerprint", \.answer.fingerprint.bytes),
        .instant("as_of", \.answer.asOf),
        .instant("due_at", \.dueAt),
        .text("lane", \.lane.rawValue),
        .instant("planned_at", \.plannedAt),
    ]
}
