import Subscriptions

/// Everything that decides what one customer may use at one instant: for `explain`.
public struct Reasons: Sendable {
    /// The app.
    public let bundleID: BundleID
    /// The operator's own id of the customer.
    public let customer: String
    /// Whether anybody ever uploaded a receipt for the customer.
    public let isKnown: Bool
    /// The instant asked about.
    public let at: Instant
    /// The database's clock.
    public let now: Instant
    /// What gives, or gave, rights at that instant, the winner of each right first.
    public let sources: [Source]
    /// The customer's subscriptions, and those of their receipts that somebody else owns.
    public let subscriptions: [SubscriptionReasons]
    /// The same of one-time purchases.
    public let purchases: [PurchaseReasons]
    /// The customer's receipts, oldest first.
    public let receipts: [ReceiptStanding]
}

extension Reasons {
    /// One thing that gives, or gave, a right.
    public struct Source: Sendable {
        /// The right.
        public let entitlement: String
        /// Whether it gives the right at the instant asked about.
        public let granted: Bool
        /// When that ends unless something changes.
        public let until: Instant?
        /// The product that grants or granted it; nil when it was given by hand.
        public let productID: ProductID?
        /// Apple's environment.
        public let environment: StoreEnvironment
        /// When the last verified answer about it came; nil while it is provisional and when it was given by hand.
        public let checkedAt: Instant?
        /// The subscription behind it; nil for a one-time purchase and while provisional.
        public let subscription: SubscriptionReasons.ID?
        /// The purchase behind it; nil for a subscription and while provisional.
        public let purchase: PurchaseReasons.ID?

        /// What was given by hand; nil when it was not.
        public let handGrant: HandGrant?

        /// Whether it is only what was said with an upload, until Apple is asked.
        public var isProvisional: Bool { subscription == nil && purchase == nil && handGrant == nil }
    }

    /// Who owns a thing, since when, and how that came.
    public struct Ownership: Sendable {
        /// The owner; nil for nobody.
        public let owner: String?
        /// Whether that is the customer asked about.
        public let isCustomer: Bool
        /// Since when.
        public let since: Instant?
        /// Whether it was somebody else's before.
        public let wasTransferred: Bool
    }

    /// How a receipt stands with Apple.
    public struct ReceiptStanding: Sendable {
        /// The receipt.
        public let id: ReceiptID
        /// When it was stored.
        public let receivedAt: Instant
        /// When Apple was last asked.
        public let askedAt: Instant?
        /// When Apple last vouched for it.
        public let verifiedAt: Instant?
        /// What the last answer was worth.
        public let outcome: String?
        /// Why the last answer was not verified.
        public let reason: String?
        /// Refusals in a row.
        public let rejections: Int
        /// When the first of them came.
        public let rejectedSince: Instant?
        /// When Apple will be asked again; nil when no more.
        public let nextCheckAt: Instant?
    }
}

/// What is known of one subscription, from the answers that are kept.
public struct SubscriptionReasons: Sendable {
    /// Tells it from the customer's others.
    public struct ID: Hashable, Sendable {
        let rowID: Int64
    }

    /// Tells it from the customer's others.
    public let id: ID
    /// Apple's environment.
    public let environment: StoreEnvironment
    /// The state; its paths lead into the observations unless there is a gap.
    public let state: SubscriptionState
    /// What the answers that are kept come to, whatever is stored; nil when none is kept.
    public let told: SubscriptionState?
    /// The operator's tolerances.
    public let policy: Policy
    /// The observations that speak of it, by number.
    public let observations: [Int64: Observation]
    /// Why its answers are not all kept any more, so that what is stored is told instead; nil when they are.
    public let gap: String?
    /// Who owns it.
    public let ownership: Reasons.Ownership
    /// Until when access goes on at the instant asked about although its end has passed; nil when it is not held.
    public let heldUntil: Instant?
    /// When the last verified answer came.
    public let checkedAt: Instant
    /// The receipt Apple is asked about for it.
    public let polledBy: ReceiptID?
    /// When that will be; nil when no more.
    public let nextCheckAt: Instant?
}

/// What is known of one one-time purchase, from the answers that are kept.
public struct PurchaseReasons: Sendable {
    /// Tells it from the customer's others.
    public struct ID: Hashable, Sendable {
        let rowID: Int64
    }

    /// Tells it from the customer's others.
    public let id: ID
    /// Apple's environment.
    public let environment: StoreEnvironment
    /// The state; its paths lead into the observations unless there is a gap.
    public let state: PurchaseState
    /// The observations that speak of it, by number.
    public let observations: [Int64: Observation]
    /// Why its answers are not all kept any more, so that what is stored is told instead; nil when they are.
    public let gap: String?
    /// Who owns it.
    public let ownership: Reasons.Ownership
}

extension FactOrigin {
    /// The observation's number and the path within its body; nil for a fact whose observation is not known.
    public var observed: (id: Int64, path: String)? { Observation.split(path) }
}

extension Ground {
    /// The observation's number and the path within its body; nil for a ground whose observation is not known.
    public var observed: (id: Int64, path: String)? { Observation.split(path) }
}
