import Postgres
package import Subscriptions

/// An answer that was read, ready to be settled.
package struct Settlement: Sendable {
    let claim: Claim
    let finding: Finding
    /// Apple's answer as it came, kept with the observation.
    let body: [UInt8]
    /// The newest receipt, as Apple returned it; stored with a new version only.
    let latestReceipt: [UInt8]?
    /// Recognizes an equal answer next time; nil when the next one must be read in any case.
    let fingerprint: Fingerprint?
    /// How far the Server API was read; nil for an answer of verifyReceipt.
    let server: ServerRead?

    package init(
        claim: Claim, finding: Finding, body: [UInt8], latestReceipt: [UInt8]? = nil, fingerprint: Fingerprint? = nil,
        server: ServerRead? = nil
    ) {
        (self.claim, self.finding, self.body) = (claim, finding, body)
        (self.latestReceipt, self.fingerprint, self.server) = (latestReceipt, fingerprint, server)
    }

    /// Returns the same claim without its answer, which does not count.
    func setAside(because reason: String) -> Settlement {
        let failure = CheckFailure(reason: reason, status: finding.status, retryable: true)
        return Settlement(claim: claim, finding: .indeterminate(failure), body: [], latestReceipt: nil, server: server)
    }

    /// Returns the same answer with other evidence and without its body.
    func saying(_ evidence: Evidence) -> Settlement {
        Settlement(
            claim: claim, finding: .verified(evidence), body: [], latestReceipt: latestReceipt,
            fingerprint: fingerprint, server: server)
    }

    var evidence: Evidence? { finding.evidence }

    /// Whether the body is worth storing: the body of an outage says nothing about the receipt.
    var saysSomething: Bool { finding.outcome != .indeterminate && !body.isEmpty }

    /// The environment in which Apple is asked about the receipt.
    var callEnvironment: StoreEnvironment { claim.environment ?? .production }

    /// The instant that the answer describes.
    var asOf: Instant { evidence?.asOf ?? claim.claimedAt }

    var subscriptionKeys: [SubscriptionRowKey] {
        guard let evidence else { return [] }
        return evidence.subscriptions.map {
            SubscriptionRowKey(appID: claim.app.id, environment: evidence.environment, id: $0)
        }
    }

    var purchases: [(key: PurchaseRowKey, evidence: PurchaseEvidence)] {
        guard let evidence else { return [] }
        return evidence.purchases.map {
            (PurchaseRowKey(appID: claim.app.id, environment: evidence.environment, purchase: $0.key), $0)
        }
    }
}

/// The result of settling a batch.
package struct SettledBatch: Sendable {
    /// A receipt whose answer could not be written; its lease runs out and it is asked about again.
    package struct Failure: Sendable {
        package let receiptID: ReceiptID
        /// One sentence.
        package let reason: String
    }

    /// The receipts whose answers equal the last ones; only their clocks moved.
    package var confirmed: Set<ReceiptID> = []
    /// The committed settlements of the answers that were interpreted.
    package var settled: [Settled] = []
    /// The reasons why answers could not be written. The log has them too.
    package var failures: [Failure] = []
    /// Settled receipts that Apple could not be asked about, with the reason, such as a secret that cannot be opened.
    var unasked: [ReceiptID: String] = [:]

    /// How many answers were settled.
    var receipts: Int { confirmed.count + settled.count }
}

/// The result of one check, after its commit.
package struct Settled: Sendable {
    /// One subscription of the receipt.
    package struct SubscriptionOutcome: Sendable {
        package let id: OriginalTransactionID
        package let environment: StoreEnvironment
        /// Its verdict at the answer's own clock.
        package let verdict: Verdict
        /// The events of this settlement, in order.
        package let events: [Event]
        /// The results of the uploads' claims to it, by customer.
        package let ownership: [AppCustomerID: OwnershipAnswer]
    }

    /// Whether asking again can help.
    package enum Retry: Sendable, Hashable {
        /// There is nothing to ask again, or it is of no use.
        case vain
        /// It may help later.
        case later
        /// Apple has a temporary problem of its own (21100 to 21199), which often passes in seconds.
        case soon
    }

    package let receiptID: ReceiptID
    /// How Apple's answer counts; a refusal during an incident of the app is indeterminate.
    package let outcome: Outcome
    /// One sentence: why it was not verified, or a remark about a verified answer.
    package let reason: String?
    package let refusal: Refusal.Kind?
    /// What Apple's refusal or failure says about asking again.
    package let retry: Retry
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

    var hasEvents: Bool { !purchaseEvents.isEmpty || subscriptions.contains { !$0.events.isEmpty } }
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

/// A subscription's natural key.
struct SubscriptionRowKey: Hashable, Comparable, Sendable {
    let appID: Int32
    let environment: StoreEnvironment
    let id: OriginalTransactionID

    /// The name of its stream of events.
    var stream: String { "subscription/\(appID)/\(environment.rawValue)/\(id)" }

    static func < (left: SubscriptionRowKey, right: SubscriptionRowKey) -> Bool {
        (left.appID, left.environment.rawValue, left.id) < (right.appID, right.environment.rawValue, right.id)
    }

    /// The keys as columns: apps, environments, ids.
    static func parameters(_ keys: [SubscriptionRowKey]) -> [Parameter] {
        [.int4s(keys.map(\.appID)), .texts(keys.map(\.environment.rawValue)), .texts(keys.map(\.id.text))]
    }
}

extension SubscriptionRowKey {
    init(subject row: Row) throws {
        self.init(
            appID: try row.int4("app_id"), environment: try row.word("environment"),
            id: OriginalTransactionID(try row.text("original_transaction_id")))
    }
}

/// A one-time purchase's natural key.
struct PurchaseRowKey: Hashable, Comparable, Sendable {
    let appID: Int32
    let environment: StoreEnvironment
    let purchase: PurchaseKey

    /// The original transaction that it is about, as notifications name it.
    var subject: SubscriptionRowKey {
        SubscriptionRowKey(appID: appID, environment: environment, id: purchase.originalTransactionID)
    }

    /// The name of its stream of events.
    var stream: String {
        "purchase/\(appID)/\(environment.rawValue)/\(purchase.originalTransactionID)/\(purchase.productID)"
    }

    static func < (left: PurchaseRowKey, right: PurchaseRowKey) -> Bool {
        (left.appID, left.environment.rawValue, left.purchase) < (
            right.appID, right.environment.rawValue, right.purchase
        )
    }

    /// The keys as columns: apps, environments, ids, products.
    static func parameters(_ keys: [PurchaseRowKey]) -> [Parameter] {
        [
            .int4s(keys.map(\.appID)), .texts(keys.map(\.environment.rawValue)),
            .texts(keys.map(\.purchase.originalTransactionID.text)), .texts(keys.map(\.purchase.productID.text)),
        ]
    }
}
