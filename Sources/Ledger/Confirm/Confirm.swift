import Postgres
import SQL
import Subscriptions

/// An answer that says what the last one about its receipt said, at a later clock.
package struct EqualAnswer: Sendable {
    /// The claim.
    package let claim: Claim
    /// The fingerprint that both answers have.
    package let fingerprint: Fingerprint
    /// Apple's clock.
    package let asOf: Instant

    /// An answer equal to the last one; nil when it differs.
    package init?(to claim: Claim, fingerprint: Fingerprint, asOf: Instant) {
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
    package func confirm(_ answers: [EqualAnswer], by worker: WorkerID, speedup: Int) async throws -> Set<ReceiptID> {
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
