import Subscriptions

/// What one check came to, after it was committed.
public struct Settled: Sendable {
    /// One subscription of the receipt.
    public struct SubscriptionOutcome: Sendable {
        /// Apple's id of the subscription.
        public let id: OriginalTransactionID
        /// The environment it lives in.
        public let environment: StoreEnvironment
        /// What it means at the answer's own clock.
        public let verdict: Verdict
        /// What this settlement changed, in order.
        public let events: [Event]
        /// What became of the uploads' claims to it: by customer.
        public let ownership: [AppCustomerID: OwnershipAnswer]
    }

    /// The receipt.
    public let receiptID: ReceiptID
    /// What Apple's answer was worth; a refusal during an incident of the app is indeterminate.
    public let outcome: Outcome
    /// One sentence, when it was not verified.
    public let reason: String?
    /// What kind of refusal it was, when it was rejected.
    public let refusal: Refusal.Kind?
    /// The receipt's subscriptions, by id; empty unless verified.
    public let subscriptions: [SubscriptionOutcome]
    /// Events of its one-time purchases, in order.
    public let purchaseEvents: [Event]
    /// When Apple will be asked again; nil when the receipt needs no more questions.
    public let nextCheckAt: Instant?
}

/// What an answer is worth.
public enum Outcome: String, Sendable {
    /// Apple vouches for the receipt; only this changes facts.
    case verified
    /// Apple does not vouch for it.
    case rejected
    /// The answer says nothing about the receipt.
    case indeterminate
}
