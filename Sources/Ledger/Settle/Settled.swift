package import Subscriptions

/// The result of one check, after its commit.
package struct Settled: Sendable {
    /// One subscription of the receipt.
    package struct SubscriptionOutcome: Sendable {
        /// Apple's id of the subscription.
        package let id: OriginalTransactionID
        /// The environment it lives in.
        package let environment: StoreEnvironment
        /// Its verdict at the answer's own clock.
        package let verdict: Verdict
        /// The events of this settlement, in order.
        package let events: [Event]
        /// The results of the uploads' claims to it, by customer.
        package let ownership: [AppCustomerID: OwnershipAnswer]
    }

    /// Whether asking again can help.
    package enum Repetition: Sendable, Hashable {
        /// There is nothing to ask again, or it is of no use.
        case vain
        /// It may help later.
        case later
        /// Apple has a temporary problem of its own (21100 to 21199), which often passes in seconds.
        case soon
    }

    /// The receipt.
    package let receiptID: ReceiptID
    /// How Apple's answer counts; a refusal during an incident of the app is indeterminate.
    package let outcome: Outcome
    /// One sentence: why it was not verified, or a remark about a verified answer.
    package let reason: String?
    /// The kind of refusal, when it was rejected.
    package let refusal: Refusal.Kind?
    /// What Apple's refusal or failure says about asking again.
    package let repetition: Repetition
    /// Why the contents are believed to be the sender's.
    package let vouching: Vouching
    /// The orders for which the receipt was sent before the settlement.
    package let orderIDs: Set<String>
    /// The receipt's subscriptions, by id; empty unless verified.
    package let subscriptions: [SubscriptionOutcome]
    /// Events of its one-time purchases, in order.
    package let purchaseEvents: [Event]
    /// When Apple will be asked again; nil when the receipt needs no more checks.
    package let nextCheckAt: Instant?
}

/// How an answer counts.
package enum Outcome: String, Sendable {
    /// Apple vouches for the receipt; only this changes facts.
    case verified
    /// Apple does not vouch for it.
    case rejected
    /// The answer says nothing about the receipt.
    case indeterminate
}
