import Subscriptions

/// How urgent a receipt is; the order of the cases is the order of urgency.
public enum Lane: Int16, Sendable, CaseIterable, CustomStringConvertible {
    /// Never verified.
    case new = 0
    /// Somebody's access depends on the answer soon.
    case edge = 1
    /// Everything else: refunds, changes of mind, long-expired customers.
    case sweep = 2

    /// The lane's name.
    public var description: String {
        switch self {
        case .new: "new"
        case .edge: "edge"
        case .sweep: "sweep"
        }
    }
}

/// The right and the duty to ask Apple about one receipt before the lease ends.
public struct Claim: Sendable {
    /// The receipt.
    public let receiptID: ReceiptID
    /// Its app.
    public let app: App
    /// The bytes to send to Apple.
    public let receipt: [UInt8]
    /// Where this receipt was verified before, if it was.
    public let environment: StoreEnvironment?
    /// How urgent it is.
    public let lane: Lane
    /// How many times it was claimed since it last got an answer that counts, this one included.
    public let attempts: Int
    /// The database's clock when it was claimed.
    public let claimedAt: Instant
    /// When it should have been asked about.
    public let scheduledFor: Instant
    /// What tells this lease from an earlier or later one.
    public let leaseToken: Int64
}

/// The key of a running worker.
public struct WorkerID: Hashable, Sendable {
    /// The number.
    public let number: Int32
}
