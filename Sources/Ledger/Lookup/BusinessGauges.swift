import Postgres
import SQL
package import Subscriptions

/// One figure of the business of one app, for metrics.
package struct BusinessGauge: Sendable, Hashable {
    /// What the figure counts.
    package enum Figure: String, Sendable, CaseIterable {
        /// Subscriptions with access at the end of the last whole day.
        case entitled
        /// Subscriptions that paid then.
        case paying
        /// Subscriptions in a trial then.
        case trial
        /// Subscriptions in a grace period now.
        case gracePeriod = "grace_period"
        /// Subscriptions in billing retry now.
        case billingRetry = "billing_retry"
        /// Monthly recurring revenue at the end of the last whole day, in units of a currency.
        case mrr
    }

    /// The app.
    package let bundleID: BundleID
    /// Apple's environment.
    package let environment: StoreEnvironment
    /// What it counts.
    package let figure: Figure
    /// The currency of `mrr`; empty for the other figures.
    package let currency: String
    /// The value.
    package let value: Double
}

extension LedgerOperations {
    /// Returns the business figures of every app.
    ///
    /// The cost grows with the days that the summaries have and with the subscriptions in grace and billing retry, not
    /// with the number of all subscriptions.
    package func businessGauges() async throws -> [BusinessGauge] {
        try await query(Queries.gaugeBusiness).map { row in
            BusinessGauge(
                bundleID: BundleID(try row.text("bundle_id")), environment: try row.word("environment"),
                figure: try row.word("figure"), currency: try row.text("currency"), value: try row.float8("value"))
        }
    }
}
