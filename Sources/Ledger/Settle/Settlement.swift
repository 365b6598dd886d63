import Subscriptions

/// One claim with what Apple said about it, ready to be settled.
public struct Settlement: Sendable {
    /// The claim.
    public let claim: Claim
    /// What the answer is worth.
    public let finding: Finding
    /// Apple's answer as it came, kept with the observation.
    public let body: [UInt8]
    /// The newest receipt, as Apple returned it; stored with a new version only.
    public let latestReceipt: [UInt8]?

    /// A claim with its answer.
    public init(claim: Claim, finding: Finding, body: [UInt8], latestReceipt: [UInt8]?) {
        self.claim = claim
        self.finding = finding
        self.body = body
        self.latestReceipt = latestReceipt
    }

    /// The evidence, when Apple vouches for the receipt.
    var evidence: Evidence? {
        switch finding {
        case .verified(let evidence): evidence
        case .rejected, .indeterminate: nil
        }
    }

    /// The instant the answer speaks for.
    var asOf: Instant { evidence?.asOf ?? claim.claimedAt }
}

/// Folds new evidence into what is stored: pure, no clock, not async.
public typealias Reconcile = @Sendable (SubscriptionState?, SubscriptionEvidence, Policy) -> Reconciled

/// A subscription's natural key.
struct SubscriptionKey: Hashable, Comparable, Sendable {
    let appID: Int32
    let environment: StoreEnvironment
    let id: OriginalTransactionID

    static func < (left: SubscriptionKey, right: SubscriptionKey) -> Bool {
        (left.appID, left.environment.rawValue, left.id) < (right.appID, right.environment.rawValue, right.id)
    }
}

/// A one-time purchase's natural key.
struct PurchaseKey: Hashable, Comparable, Sendable {
    let appID: Int32
    let environment: StoreEnvironment
    let id: OriginalTransactionID
    let productID: ProductID

    static func < (left: PurchaseKey, right: PurchaseKey) -> Bool {
        (left.appID, left.environment.rawValue, left.id, left.productID)
            < (right.appID, right.environment.rawValue, right.id, right.productID)
    }
}

extension Settlement {
    /// The natural keys of the subscriptions in the answer.
    var subscriptionKeys: [SubscriptionKey] {
        guard let evidence else { return [] }
        return evidence.subscriptions.map {
            SubscriptionKey(appID: claim.app.id, environment: evidence.environment, id: $0)
        }
    }

    /// The one-time purchases in the answer by natural key.
    var purchases: [(key: PurchaseKey, evidence: PurchaseEvidence)] {
        guard let evidence else { return [] }
        return evidence.purchases.map { purchase in
            let key = PurchaseKey(
                appID: claim.app.id, environment: evidence.environment, id: purchase.originalTransactionID,
                productID: purchase.productID)
            return (key, purchase)
        }
    }
}
