import Subscriptions

/// Which part of the ledger is rebuilt.
package struct RebuildScope: Sendable {
    /// Only this app; nil for every one.
    package var app: BundleID?
    /// Only what is in this customer's receipts; nil for everybody's.
    package var customer: String?

    /// A scope; everything unless limited.
    package init(app: BundleID? = nil, customer: String? = nil) {
        self.app = app
        self.customer = customer
    }
}

/// Where a rebuild stands: subscriptions first, then one-time purchases, each in the order of their keys.
package enum RebuildPlace: Sendable, Hashable {
    /// Behind the subscription with this key; 0 to begin.
    case subscriptions(after: Int64)
    /// Behind the purchase with this key; 0 to begin.
    case purchases(after: Int64)

    /// Where a rebuild begins.
    package static let start = RebuildPlace.subscriptions(after: 0)
}

/// A fact that is stored otherwise than the observations say.
package struct RebuildDifference: Sendable, Hashable {
    /// What it is a fact of, such as `com.example.app Production subscription 1000`.
    package let subject: String
    /// Its name, such as `period 17.expires_at`.
    package let fact: String
    /// What is stored; nil for nothing.
    package let stored: String?
    /// What the observations say; nil for nothing.
    package let rebuilt: String?
}

/// Something that cannot be rebuilt in full and is left as it is.
package struct RebuildGap: Sendable, Hashable {
    /// What it is, as in `RebuildDifference.subject`.
    package let subject: String
    /// One sentence.
    package let reason: String
}

/// What one batch of a rebuild came to, after it was committed.
package struct RebuildBatch: Sendable {
    /// Subscriptions or purchases that were looked at.
    package var examined = 0
    /// Those of them that were written anew.
    package var corrected = 0
    /// What differs, or differed before it was corrected.
    package var differences: [RebuildDifference] = []
    /// What was left as it is because its observations are not all there.
    package var gaps: [RebuildGap] = []
    /// Where to go on; nil when this was the last batch.
    package var next: RebuildPlace?
}
