package import Subscriptions

/// The part of the ledger to rebuild.
package struct RebuildScope: Sendable {
    /// Only this app; nil for every app.
    package var app: BundleID?
    /// Only the contents of this customer's receipts; nil for every customer.
    package var customer: String?

    /// Creates a scope; everything unless limited.
    package init(app: BundleID? = nil, customer: String? = nil) {
        self.app = app
        self.customer = customer
    }
}

/// The place that a rebuild has reached: subscriptions first, then one-time purchases, then customers, each in the order
/// of their keys.
package enum RebuildPlace: Sendable, Hashable {
    /// After the subscription with this key; 0 to begin.
    case subscriptions(after: Int64)
    /// After the purchase with this key; 0 to begin.
    case purchases(after: Int64)
    /// After the stored entitlements of the customer with this key; 0 to begin.
    case entitlements(after: Int64)

    /// The start of a rebuild.
    package static let start = RebuildPlace.subscriptions(after: 0)
}

/// A stored fact that differs from the observations.
package struct RebuildDifference: Sendable, Hashable {
    /// The subject of the fact, such as `com.example.app Production subscription 1000`.
    package let subject: String
    /// The fact's name, such as `period 17.expires_at`.
    package let fact: String
    /// The stored value; nil for none.
    package let stored: String?
    /// The value that the observations give; nil for none.
    package let rebuilt: String?
}

/// A subscription or purchase that cannot be rebuilt in full and is left as it is.
package struct RebuildGap: Sendable, Hashable {
    /// The subject, as in `RebuildDifference.subject`.
    package let subject: String
    /// Why, in one sentence.
    package let reason: String
}

/// The result of one batch of a rebuild, after its commit.
package struct RebuildBatch: Sendable {
    /// Subscriptions, purchases or customers that were examined.
    package var examined = 0
    /// Those of them that were rewritten.
    package var corrected = 0
    /// The differences, including those that were then corrected.
    package var differences: [RebuildDifference] = []
    /// The subscriptions or purchases left as they are because their observations are incomplete.
    package var gaps: [RebuildGap] = []
    /// Where to continue; nil after the last batch.
    package var next: RebuildPlace?
}
