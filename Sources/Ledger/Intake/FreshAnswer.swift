import Crypto
import Postgres
import SQL
import Subscriptions

extension SubscriptionLedger {
    /// What the last check of an upload's receipt came to, when asking Apple again could only bring the same; nil when Apple
    /// has to be asked.
    ///
    /// That is so when Apple vouched for the receipt within `seconds`, all it holds is the customer's already, something of it
    /// runs, and nothing ends or is due within as many seconds: neither by the schedule nor because of a notification.
    ///
    /// - Parameter speedup: As the workers have it.
    public func freshAnswer(
        to upload: Upload, for app: App, withinSeconds seconds: Double, speedup: Int
    ) async throws -> (settled: Settled, customer: String)? {
        let asked: [Parameter] = [
            .int4(app.id), .bytea(upload.digest), .text(upload.customer), .float8(seconds), .text(upload.storefront),
            .int8(upload.priceMilliunits), .text(upload.currency),
        ]
        return try await database.transaction { transaction in
            try transaction.query(Queries.holdSnapshot)
            let rows = try transaction.query(Queries.readFreshAnswer, asked)
            guard let row = rows.first else { return nil }
            let loaded = try LoadedSubscriptions(rows, recordedMicroseconds: 0, lockingOwners: false, in: transaction)
            let customer = try row.text("called")
            let outcomes = loaded.drafts.values.sorted { $0.key < $1.key }.compactMap { draft in
                draft.stored.map { state in
                    Settled.SubscriptionOutcome(
                        id: draft.key.id, environment: draft.key.environment,
                        verdict: verdict(
                            of: state.facts, at: state.asOf,
                            policy: app.policy(for: draft.key.environment, speedup: speedup)),
                        events: [], ownership: [customer: .held])
                }
            }
            let settled = Settled(
                receiptID: ReceiptID(try row.int8("receipt_id")), outcome: .verified, reason: nil, refusal: nil,
                subscriptions: outcomes, purchaseEvents: [], nextCheckAt: try row.instantIfPresent("due_at"))
            return (settled, customer)
        }
    }
}
