import Subscriptions

/// What one check came to, after it was committed.
package struct Settled: Sendable {
    /// One subscription of the receipt.
    package struct SubscriptionOutcome: Sendable {
        /// Apple's id of the subscription.
        package let id: OriginalTransactionID
        /// The environment it lives in.
        package let environment: StoreEnvironment
        /// What it means at the answer's own clock.
        package let verdict: Verdict
        /// What this settlement changed, in order.
        package let events: [Event]
        /// What became of the uploads' claims to it: by customer.
        package let ownership: [AppCustomerID: OwnershipAnswer]
    }

    /// The receipt.
    package let receiptID: ReceiptID
    /// What Apple's answer was worth; a refusal during an incident of the app is indeterminate.
    package let outcome: Outcome
    /// One sentence, when it was not verified.
    package let reason: String?
    /// What kind of refusal it was, when it was rejected.
    package let refusal: Refusal.Kind?
    /// The receipt's subscriptions, by id; empty unless verified.
    package let subscriptions: [SubscriptionOutcome]
    /// Events of its one-time purchases, in order.
    package let purchaseEvents: [Event]
    /// When Apple will be asked again; nil when the receipt needs no more questions.
    package let nextCheckAt: Instant?
}

/// What an answer is worth.
package enum Outcome: String, Sendable {
    /// Apple vouches for the receipt; only this changes facts.
    case verified
    /// Apple does not vouch for it.
    case rejected
    /// The answer says nothing about the receipt.
    case indeterminate
}
