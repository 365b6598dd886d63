import Subscriptions

/// Which part of the ledger is rebuilt.
public struct RebuildScope: Sendable {
    /// Only this app; nil for every one.
    public var app: BundleID?
    /// Only what is in this customer's receipts; nil for everybody's.
    public var customer: String?

    /// A scope; everything unless limited.
    public init(app: BundleID? = nil, customer: String? = nil) {
        self.app = app
        self.customer = customer
    }
}

/// Where a rebuild stands: subscriptions first, then one-time purchases, each in the order of their keys.
public enum RebuildPlace: Sendable, Hashable {
    /// Behind the subscription with this key; 0 to begin.
    case subscriptions(after: Int64)
    /// Behind the purchase with this key; 0 to begin.
    case purchases(after: Int64)

    /// Where a rebuild begins.
    public static let start = RebuildPlace.subscriptions(after: 0)
}

/// A fact that is stored otherwise than the observations say.
public struct RebuildDifference: Sendable, Hashable {
    /// What it is a fact of, such as `com.example.app Production subscription 1000`.
    public let subject: String
    /// Its name, such as `period 17.expires_at`.
    public let fact: String
    /// What is stored; nil for nothing.
    public let stored: String?
    /// What the observations say; nil for nothing.
    public let rebuilt: String?
}

/// Something that cannot be rebuilt in full and is left as it is.
public struct RebuildGap: Sendable, Hashable {
    /// What it is, as in `RebuildDifference.subject`.
    public let subject: String
    /// One sentence.
    public let reason: String
}

/// What one batch of a rebuild came to, after it was committed.
public struct RebuildBatch: Sendable {
    /// Subscriptions or purchases that were looked at.
    public var examined = 0
    /// Those of them that were written anew.
    public var corrected = 0
    /// What differs, or differed before it was corrected.
    public var differences: [RebuildDifference] = []
    /// What was left as it is because its observations are not all there.
    public var gaps: [RebuildGap] = []
    /// Where to go on; nil when this was the last batch.
    public var next: RebuildPlace?
}
