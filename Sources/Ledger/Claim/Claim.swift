import Subscriptions

/// How urgent a receipt is; the order of the cases is the order of urgency.
package enum Lane: Int16, Sendable, CaseIterable, CustomStringConvertible {
    /// Never verified.
    case new = 0
    /// Somebody's access depends on the answer soon.
    case edge = 1
    /// Apple tries to charge the customer.
    case retry = 2
    /// Never verified, but imported: nobody waits.
    case imported = 3
    /// Everything else: refunds, changes of mind, long-expired customers.
    case sweep = 4
    /// Workers crashed while asking about it: it is asked about alone, so that nothing else suffers.
    case quarantine = 5

    /// The lane's name.
    package var description: String {
        switch self {
        case .new: "new"
        case .edge: "edge"
        case .retry: "retry"
        case .imported: "import"
        case .sweep: "sweep"
        case .quarantine: "quarantine"
        }
    }
}

/// The right and the duty to ask Apple about one receipt before the lease ends.
package struct Claim: Sendable {
    /// The receipt.
    package let receiptID: ReceiptID
    /// Its app.
    package let app: App
    /// The bytes to send to Apple.
    package let receipt: [UInt8]
    /// Whether these are the bytes of the newest receipt that Apple returned, not those that were uploaded.
    package let asksLatest: Bool
    /// Where this receipt was verified before, if it was.
    package let environment: StoreEnvironment?
    /// How urgent it is.
    package let lane: Lane
    /// How many times it was claimed since it last got an answer that counts, this one included.
    package let attempts: Int
    /// The database's clock when it was claimed.
    package let claimedAt: Instant
    /// The monotonic clock of this process when it was claimed.
    package let heldSince: ContinuousClock.Instant
    /// When it should have been asked about.
    package let scheduledFor: Instant
    /// Its place in the line of its lane, from which it was claimed.
    package let dueAt: Instant
    /// What tells this lease from an earlier or later one.
    package let leaseToken: Int64
    /// Of the last verified answer; nil when the next one must be read in full.
    package let fingerprint: Fingerprint?
}

/// The key of a running worker.
package struct WorkerID: Hashable, Sendable {
    /// The number.
    package let number: Int32
}
