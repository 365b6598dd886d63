import SQL

/// What the promises depend on beside the ledger itself: how workers work.
package struct VerifyTerms: Sendable, Hashable {
    /// How long a worker leases a receipt, in seconds.
    package let leaseSeconds: Double
    /// By what workers divide the schedule's delays.
    package let speedup: Int
    /// How long after the first look the second one is, in seconds: what is under way is over by then.
    package var secondLookSeconds = 2.0

    /// Terms from their parts.
    package init(leaseSeconds: Double, speedup: Int) {
        self.leaseSeconds = leaseSeconds
        self.speedup = max(1, speedup)
    }

    /// By how much a receipt may be scheduled late, in seconds: clocks of plans that were made one after the other.
    var toleranceSeconds: Double { max(1, 60 / Double(speedup)) }

    /// A check within this time is urgent, in seconds.
    var soonSeconds: Double { max(1, 3_600 / Double(speedup)) }
}

extension SubscriptionLedger {
    /// The terms of the worker that gave the newest sign of life; `otherwise` where no worker told its own.
    package func verifyTerms(otherwise: VerifyTerms) async throws -> VerifyTerms {
        guard let row = try await query(Queries.readVerifyTerms).first else { return otherwise }
        return VerifyTerms(leaseSeconds: try row.float8("lease_seconds"), speedup: Int(try row.int4("speedup")))
    }
}
