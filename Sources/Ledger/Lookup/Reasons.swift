import Subscriptions

/// Everything that decides what one customer may use at one instant: for `explain`.
package struct Reasons: Sendable {
    /// The app.
    package let bundleID: BundleID
    /// The operator's own id of the customer.
    package let customer: String
    /// Whether anybody ever uploaded a receipt for the customer.
    package let isKnown: Bool
    /// The instant asked about.
    package let at: Instant
    /// The database's clock.
    package let now: Instant
    /// What gives, or gave, rights at that instant, the winner of each right first.
    package let sources: [Source]
    /// The customer's subscriptions, and those of their receipts that somebody else owns.
    package let subscriptions: [SubscriptionReasons]
    /// The same of one-time purchases.
    package let purchases: [PurchaseReasons]
    /// The customer's receipts, oldest first.
    package let receipts: [ReceiptStanding]
}

extension Reasons {
    /// One thing that gives, or gave, a right.
    package struct Source: Sendable {
        /// The right.
        package let entitlement: String
        /// Whether it gives the right at the instant asked about.
        package let granted: Bool
        /// When that ends unless something changes.
        package let until: Instant?
        /// The product that grants or granted it; nil when it was given by hand.
        package let productID: ProductID?
        /// Apple's environment.
        package let environment: StoreEnvironment
        /// When the last verified answer about it came; nil while it is provisional and when it was given by hand.
        package let checkedAt: Instant?
        /// The subscription behind it; nil for a one-time purchase and while provisional.
        package let subscription: SubscriptionReasons.ID?
        /// The purchase behind it; nil for a subscription and while provisional.
        package let purchase: PurchaseReasons.ID?

        /// What was given by hand; nil when it was not.
        package let handGrant: HandGrant?

        /// Whether it is only what was said with an upload, until Apple is asked.
        package var isProvisional: Bool { subscription == nil && purchase == nil && handGrant == nil }
    }

    /// Who owns a thing, since when, and how that came.
    package struct Ownership: Sendable {
        /// The owner; nil for nobody.
        package let owner: String?
        /// Whether that is the customer asked about.
        package let isCustomer: Bool
        /// Since when.
        package let since: Instant?
        /// Whether it was somebody else's before.
        package let wasTransferred: Bool
    }

    /// How a receipt stands with Apple.
    package struct ReceiptStanding: Sendable {
        /// The receipt.
        package let id: ReceiptID
        /// When it was stored.
        package let receivedAt: Instant
        /// When Apple was last asked.
        package let askedAt: Instant?
        /// When Apple last vouched for it.
        package let verifiedAt: Instant?
        /// What the last answer was worth.
        package let outcome: String?
        /// Why the last answer was not verified.
        package let reason: String?
        /// Refusals in a row.
        package let rejections: Int
        /// When the first of them came.
        package let rejectedSince: Instant?
        /// When Apple will be asked again; nil when no more.
        package let nextCheckAt: Instant?
    }
}

/// What is known of one subscription, from the answers that are kept.
package struct SubscriptionReasons: Sendable {
    /// Tells it from the customer's others.
    package struct ID: Hashable, Sendable {
        let rowID: Int64
    }

    /// Tells it from the customer's others.
    package let id: ID
    /// Apple's environment.
    package let environment: StoreEnvironment
    /// The state; its paths lead into the observations unless there is a gap.
    package let state: SubscriptionState
    /// What the answers that are kept come to, whatever is stored; nil when none is kept.
    package let told: SubscriptionState?
    /// The operator's tolerances.
    package let policy: Policy
    /// The observations that speak of it, by number.
    package let observations: [Int64: Observation]
    /// Why its answers are not all kept any more, so that what is stored is told instead; nil when they are.
    package let gap: String?
    /// Who owns it.
    package let ownership: Reasons.Ownership
    /// Until when access goes on at the instant asked about although its end has passed; nil when it is not held.
    package let heldUntil: Instant?
    /// When the last verified answer came.
    package let checkedAt: Instant
    /// The receipt Apple is asked about for it.
    package let polledBy: ReceiptID?
    /// When that will be; nil when no more.
    package let nextCheckAt: Instant?
}

/// What is known of one one-time purchase, from the answers that are kept.
package struct PurchaseReasons: Sendable {
    /// Tells it from the customer's others.
    package struct ID: Hashable, Sendable {
        let rowID: Int64
    }

    /// Tells it from the customer's others.
    package let id: ID
    /// Apple's environment.
    package let environment: StoreEnvironment
    /// The state; its paths lead into the observations unless there is a gap.
    package let state: PurchaseState
    /// The observations that speak of it, by number.
    package let observations: [Int64: Observation]
    /// Why its answers are not all kept any more, so that what is stored is told instead; nil when they are.
    package let gap: String?
    /// Who owns it.
    package let ownership: Reasons.Ownership
}

extension FactOrigin {
    /// The observation's number and the path within its body; nil for a fact whose observation is not known.
    package var observed: (id: Int64, path: String)? { Observation.split(path) }
}

extension Ground {
    /// The observation's number and the path within its body; nil for a ground whose observation is not known.
    package var observed: (id: Int64, path: String)? { Observation.split(path) }
}
