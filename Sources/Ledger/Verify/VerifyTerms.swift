import Postgres
import SQL

/// The settings of workers, on which the promises depend beside the ledger itself.
package struct VerifyTerms: Sendable, Hashable {
    /// How long a worker leases a receipt, in seconds.
    package let leaseSeconds: Double
    /// The number by which workers divide the schedule's delays.
    package let speedup: Int
    /// The delay of the second look after the first, in seconds: work in progress is over by then.
    package var secondLookSeconds = 2.0

    /// Creates terms.
    package init(leaseSeconds: Double, speedup: Int) {
        self.leaseSeconds = leaseSeconds
        self.speedup = max(1, speedup)
    }

    /// The most by which a receipt may be scheduled late, in seconds: plans made one after the other have different
    /// clocks.
    var toleranceSeconds: Double { max(1, 60 / Double(speedup)) }

    /// A check within this time is urgent, in seconds.
    var soonSeconds: Double { max(1, 3_600 / Double(speedup)) }
}

extension LedgerOperations {
    /// Returns the terms of the worker with the newest heartbeat; `otherwise` where no worker reported its own.
    package func verifyTerms(otherwise: VerifyTerms) async throws -> VerifyTerms {
        guard let row = try await query(Queries.readVerifyTerms).first else { return otherwise }
        return VerifyTerms(leaseSeconds: try row.float8("lease_seconds"), speedup: Int(try row.int4("speedup")))
    }
}
