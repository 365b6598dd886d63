import AppStoreSimulator
import Postgres
import Subscriptions

/// What the schema `perennial` tells, read as an outsider would.
struct Reported {
    struct Now {
        let periods: Int
        /// At the instant at which the store's clock stopped.
        let entitled: Bool
        /// Whether the period was over at the same instant and its renewal not stored yet: access goes on until the
        /// renewal is late.
        let awaitsRenewal: Bool
        /// The state at the same instant.
        let state: String
        let customer: String?
        let willRenew: Bool?
        /// Apple's clock at first sight, in milliseconds.
        let firstAsOf: Int64
        /// When the first sight was settled, in milliseconds: what Apple stated by then is part of it.
        let firstRecordedAt: Int64
    }

    struct Change {
        let kind: String
        let version: Int64
        /// `detail.periods`, or 1.
        let periods: Int
        let productID: String
        let occurredAt: Int64

        /// Whether it tells of an immediate upgrade, which stands for a period of its own.
        func isReplacement(in truth: SubscriptionTruth) -> Bool {
            guard kind == "product.changed" else { return false }
            // A history is asked for after the statuses, whose clock is the answer's, and may show what began since.
            return truth.periods.contains { period in
                period.product == productID && (occurredAt...occurredAt + 1_000).contains(period.purchase)
                    && truth.periods.contains { $0.upgraded && $0.cancelled == period.purchase }
            }
        }
    }

    /// Each subscription has exactly one event of these kinds, its first.
    static let beginnings: Set<String> = ["subscription.started", "trial.started"]

    /// Each later period has exactly one event of these kinds, unless it replaces another.
    static let continuations: Set<String> = [
        "trial.converted", "subscription.renewed", "subscription.recovered", "subscription.reactivated",
    ]

    let subscriptions: [String: Now]
    let events: [String: [Change]]

    /// Reads access as of `instant`, in milliseconds since 1970: an answer without a clock of its own speaks for the
    /// database's clock, which goes on when the store's has stopped.
    init(connectionString: String, at instant: Int64) async throws {
        let database = Database(DatabaseConfiguration(connectionString: connectionString)) { print($0) }
        let rows = try await database.query(
            Statement(
                name: "told_now",
                sql: """
                    SELECT n.original_transaction_id, n.periods, n.customer, n.will_renew, p.entitled,
                           p.state = 'awaiting_renewal' AS awaits_renewal, p.state::text AS state,
                           (SELECT e.as_of FROM ledger.event e WHERE e.subscription_id = s.subscription_id
                            ORDER BY e.version, e.ordinal LIMIT 1) AS first_as_of,
                           (SELECT e.recorded_at FROM ledger.event e WHERE e.subscription_id = s.subscription_id
                            ORDER BY e.version, e.ordinal LIMIT 1) AS first_recorded_at
                    FROM perennial.subscription_now n
                    JOIN ledger.subscription s USING (original_transaction_id)
                    JOIN ledger.subscription_span p USING (subscription_id)
                    WHERE upper_inf(p.known) AND p.valid @> $1::timestamptz
                    """), [.timestamptz(microseconds: instant * 1_000)])
        let changes = try await database.query(
            Statement(
                name: "told_events",
                sql: """
                    SELECT original_transaction_id, kind, version, product_id, occurred_at,
                           COALESCE((detail ->> 'periods')::int, 1) AS periods
                    FROM perennial.event_log WHERE original_transaction_id IS NOT NULL ORDER BY position
                    """))
        await database.close()
        subscriptions = try rows.reduce(into: [:]) { all, row in
            all[try row.text("original_transaction_id")] = Now(
                periods: Int(try row.int4("periods")), entitled: try row.bool("entitled"),
                awaitsRenewal: try row.bool("awaits_renewal"), state: try row.text("state"),
                customer: try row.textIfPresent("customer"),
                willRenew: try row.boolIfPresent("will_renew"),
                firstAsOf: try row.timestamptz("first_as_of") / 1000,
                firstRecordedAt: try row.timestamptz("first_recorded_at") / 1000)
        }
        events = try changes.reduce(into: [:]) { all, row in
            all[try row.text("original_transaction_id"), default: []].append(
                Change(
                    kind: try row.text("kind"), version: try row.int8("version"), periods: Int(try row.int4("periods")),
                    productID: try row.text("product_id"), occurredAt: try row.timestamptz("occurred_at") / 1000))
        }
    }
}

extension SubscriptionTruth {
    /// Whether the reported state is the one that Apple's status, 1 to 5, stands for. Apple has no status for the wait
    /// after an end, and calls a subscription active whose next period is charged already.
    func hasStatus(of reported: Reported.Now) -> Bool {
        guard let state = State(rawValue: reported.state) else { return false }
        switch state {
        case .active: return appleStatus == .active
        // The store stopped between the end of a period and the booking of the next one. Access until then ends by the
        // database's clock, which goes on.
        case .expired: return appleStatus == .expired || appleStatus == .active && access == .none && autoRenewStatus
        case .billingRetry: return appleStatus == .billingRetry
        case .gracePeriod: return appleStatus == .gracePeriod
        // Apple's status counts a period that was charged ahead before it begins.
        case .revoked: return appleStatus == .revoked || access == .none && isChargedAhead
        case .awaitingRenewal: return access == .none || appleStatus == .active
        }
    }

    /// Whether the reported access is right: what Apple's data give, and access from the end of a period until the next
    /// one is booked.
    func agrees(with reported: Reported.Now) -> Bool {
        if reported.awaitsRenewal { return reported.entitled && autoRenewStatus && access == .none }
        // A period that was charged ahead begins by the database's clock, which goes on when the store's has stopped.
        if reported.entitled, access == .none, autoRenewStatus, let last = periods.last, last.cancelled == nil {
            return isChargedAhead
        }
        return reported.entitled == (access != .none)
    }

    /// Whether the last period was charged before it begins.
    private var isChargedAhead: Bool { periods.last.map { $0.booked < $0.purchase } ?? false }
}
