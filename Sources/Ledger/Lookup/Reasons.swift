package import Subscriptions

/// Everything that decides the entitlements of one customer at one instant, for `explain`.
package struct Reasons: Sendable {
    /// The app.
    package let bundleID: BundleID
    /// The operator's own id of the customer.
    package let customer: String
    /// Whether the customer is known in the app.
    package let isKnown: Bool
    /// The instant asked about.
    package let at: Instant
    /// The database's clock.
    package let now: Instant
    /// What gives, or gave, entitlements at that instant, the winner of each entitlement first.
    package let sources: [Source]
    /// The customer's subscriptions, and those in the customer's receipts that another customer owns.
    package let subscriptions: [SubscriptionReasons]
    /// The same for one-time purchases.
    package let purchases: [PurchaseReasons]
    /// The customer's receipts, oldest first.
    package let receipts: [ReceiptStanding]
}

extension Reasons {
    /// One source of an entitlement, present or past.
    package struct Source: Sendable {
        /// The entitlement.
        package let entitlement: String
        /// Whether it grants the entitlement at the instant asked about.
        package let granted: Bool
        /// When the grant ends unless something changes.
        package let until: Instant?
        /// The product that grants or granted it; nil for a manual grant.
        package let productID: ProductID?
        /// Apple's environment.
        package let environment: StoreEnvironment
        /// When the last verified answer about it came; nil while it is provisional and for a manual grant.
        package let checkedAt: Instant?
        /// The subscription behind it; nil for a one-time purchase and while provisional.
        package let subscription: SubscriptionReasons.ID?
        /// The purchase behind it; nil for a subscription and while provisional.
        package let purchase: PurchaseReasons.ID?

        /// The manual grant; nil when it is none.
        package let manualGrant: ManualGrant?

        /// Whether it rests only on the operator's word with an upload, until Apple is asked.
        package var isProvisional: Bool { subscription == nil && purchase == nil && manualGrant == nil }
    }

    /// The owner of a subscription or purchase, since when, and how they came to own it.
    package struct Ownership: Sendable {
        /// The owner; nil for none.
        package let owner: String?
        /// Whether the owner is the customer asked about.
        package let isCustomer: Bool
        /// The start of the ownership.
        package let since: Instant?
        /// Whether another customer owned it before.
        package let wasTransferred: Bool
    }

    /// The state of a receipt at Apple.
    package struct ReceiptStanding: Sendable {
        /// The receipt.
        package let id: ReceiptID
        /// When it was stored.
        package let receivedAt: Instant
        /// When Apple was last asked.
        package let askedAt: Instant?
        /// When Apple last vouched for it.
        package let verifiedAt: Instant?
        /// How the last answer counts.
        package let outcome: String?
        /// Why the last answer was not verified.
        package let reason: String?
        /// Consecutive refusals.
        package let rejections: Int
        /// When the first of them came.
        package let rejectedSince: Instant?
        /// When Apple will be asked again; nil when it will not be.
        package let nextCheckAt: Instant?
    }
}

/// The known facts of one subscription, from the stored answers.
package struct SubscriptionReasons: Sendable {
    /// Identifies it among the customer's subscriptions.
    package struct ID: Hashable, Sendable {
        let rowID: Int64
    }

    /// Identifies it among the customer's subscriptions.
    package let id: ID
    /// Apple's environment.
    package let environment: StoreEnvironment
    /// The state; its paths lead into the observations unless there is a gap.
    package let state: SubscriptionState
    /// The state that the stored answers give, whatever is stored as the state; nil when no answer is stored.
    package let replayed: SubscriptionState?
    /// The operator's tolerances.
    package let policy: Policy
    /// The observations about it, by number.
    package let observations: [Int64: Observation]
    /// Why its stored answers do not give its state, so that the stored state is shown instead; nil when they do.
    package let gap: String?
    /// Its owner.
    package let ownership: Reasons.Ownership
    /// The end of the outage allowance that is in use at the instant asked about; nil when none is.
    package let allowedUntil: Instant?
    /// When the last verified answer came.
    package let checkedAt: Instant
    /// The receipt Apple is asked about for it.
    package let polledBy: ReceiptID?
    /// When Apple will be asked about it; nil when it will not be.
    package let nextCheckAt: Instant?
}

/// The known facts of one one-time purchase, from the stored answers.
package struct PurchaseReasons: Sendable {
    /// Identifies it among the customer's purchases.
    package struct ID: Hashable, Sendable {
        let rowID: Int64
    }

    /// Identifies it among the customer's purchases.
    package let id: ID
    /// Apple's environment.
    package let environment: StoreEnvironment
    /// The state; its paths lead into the observations unless there is a gap.
    package let state: PurchaseState
    /// The observations about it, by number.
    package let observations: [Int64: Observation]
    /// Why its stored answers do not give its state, so that the stored state is shown instead; nil when they do.
    package let gap: String?
    /// Its owner.
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
