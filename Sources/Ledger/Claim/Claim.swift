package import Subscriptions

/// The queue in which a receipt waits for its check; the cases are in order of urgency.
///
/// The raw values are the words of `ledger.lane`.
package enum Lane: String, Sendable, CaseIterable, CustomStringConvertible {
    /// Never verified.
    case new
    /// A customer's access may change at or soon after the answer.
    case expiring
    /// Apple tries to charge the customer.
    case retry
    /// Never verified, but imported: no customer is waiting.
    case imported = "import"
    /// Everything else: refunds, changes of mind, long-expired customers.
    case sweep
    /// Workers crashed while checking it: it is checked alone, so that no other receipt suffers.
    case quarantine

    /// The lane's name.
    package var description: String { rawValue }
}

/// A leased job: until the lease ends, only the worker that holds it asks Apple about this receipt.
package struct Claim: Sendable {
    /// The receipt.
    package let receiptID: ReceiptID
    /// Its app.
    package let app: App
    /// The bytes to send to Apple.
    package let receipt: [UInt8]
    /// Whether these bytes are the newest receipt that Apple returned, not the uploaded one.
    package let asksLatest: Bool
    /// The environment in which this receipt was verified before, if any.
    package let environment: StoreEnvironment?
    /// What the device sent.
    package let form: SubmittedForm
    /// Whether verifyReceipt vouched for it.
    package let isVouched: Bool
    /// A transaction id by which the Server API can be asked, if one is stored.
    package let transactionID: TransactionID?
    /// Where the Server API's history is read on; nil: from its start.
    package let historyRevision: String?
    /// The urgency of the receipt.
    package let lane: Lane
    /// The number of claims since the last answer that counts, including this one.
    package let attempts: Int
    /// The time of the claim, by the database's clock.
    package let claimedAt: Instant
    /// The time of the claim, by this process's monotonic clock.
    package let heldSince: ContinuousClock.Instant
    /// The time at which the check was planned.
    package let scheduledFor: Instant
    /// Its due time in its lane when it was claimed.
    package let dueAt: Instant
    /// The worker that has the lease.
    package internal(set) var worker: WorkerID
    /// The token that distinguishes this lease from earlier and later ones.
    package let leaseToken: Int64
    /// The fingerprint of the last verified answer; nil when the next answer must be read in full.
    package private(set) var fingerprint: Fingerprint?
    /// The fingerprint of what that answer means; nil without a fingerprint.
    let meaning: Fingerprint?
    /// What the receipt polls, as of that answer; nil without a fingerprint.
    let polled: PolledContents?

    /// The database's clock: its clock at the claim and the time that passed here since.
    package var databaseNow: Instant {
        claimedAt + Delay(milliseconds: Int64((ContinuousClock.now - heldSince) / .milliseconds(1)))
    }

    /// The same claim, whose answer is read in full even where it equals the last one.
    package var inFull: Claim {
        var claim = self
        claim.fingerprint = nil
        return claim
    }
}

/// What a device sent; the raw values are the words of `ledger.receipt_form`.
package enum SubmittedForm: String, Sendable, CaseIterable {
    /// A receipt.
    case receipt
    /// A signed transaction of StoreKit 2.
    case signedTransaction = "signed_transaction"
    /// The id of a transaction alone.
    case transactionID = "transaction_id"
}

/// The key of a running worker.
package struct WorkerID: Hashable, Sendable {
    /// The number.
    package let number: Int32
}
