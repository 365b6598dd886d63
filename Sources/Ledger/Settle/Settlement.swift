import Postgres
package import Subscriptions

/// An answer that was read, ready to be settled.
struct Settlement: Sendable {
    let claim: Claim
    /// The meaning of the answer.
    let finding: Finding
    /// Apple's answer as it came, kept with the observation.
    let body: [UInt8]
    /// The newest receipt, as Apple returned it; stored with a new version only.
    let latestReceipt: [UInt8]?
    /// Recognizes an equal answer next time; nil when the next answer must be read in full.
    let fingerprint: Fingerprint?
    /// How far the Server API was read; nil for an answer of verifyReceipt.
    let server: ServerRead?

    init(
        claim: Claim, finding: Finding, body: [UInt8], latestReceipt: [UInt8]?, fingerprint: Fingerprint? = nil,
        server: ServerRead? = nil
    ) {
        self.server = server
        self.claim = claim
        self.finding = finding
        self.body = body
        self.latestReceipt = latestReceipt
        self.fingerprint = fingerprint
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
            fingerprint: fingerprint,
            server: server)
    }

    /// The evidence, when Apple vouches for the receipt.
    var evidence: Evidence? {
        switch finding {
        case .verified(let evidence): evidence
        case .rejected, .indeterminate: nil
        }
    }

    /// Whether the body is worth storing: the body of an outage says nothing about the receipt.
    var saysSomething: Bool { finding.outcome != .indeterminate && !body.isEmpty }

    /// The instant that the answer describes.
    var asOf: Instant { evidence?.asOf ?? claim.claimedAt }

    /// The natural keys of the subscriptions in the answer.
    var subscriptionKeys: [SubscriptionRowKey] {
        guard let evidence else { return [] }
        return evidence.subscriptions.map {
            SubscriptionRowKey(appID: claim.app.id, environment: evidence.environment, id: $0)
        }
    }

    /// The one-time purchases in the answer by natural key.
    var purchases: [(key: PurchaseRowKey, evidence: PurchaseEvidence)] {
        guard let evidence else { return [] }
        return evidence.purchases.map {
            (PurchaseRowKey(appID: claim.app.id, environment: evidence.environment, purchase: $0.key), $0)
        }
    }
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
}

extension SubscriptionRowKey {
    /// Reads what a row is about.
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
}

extension App {
    /// Returns the same app with another speed-up.
    func accelerated(by speedup: Int) -> App {
        var app = self
        app.speedup = speedup
        return app
    }

    /// The app's tolerances in one environment, divided by the speed-up.
    package func policy(for environment: StoreEnvironment) -> Policy {
        var policy = Policy.standard(for: environment, speedup: speedup)
        let leeway =
            switch environment {
            case .production: leeway
            case .sandbox: sandboxLeeway
            }
        policy.leeway = Delay(milliseconds: leeway.milliseconds / Int64(policy.speedup))
        policy.preCheckSpread = preCheckSpread
        policy.outageAllowance = Delay(milliseconds: outageAllowance.milliseconds / Int64(policy.speedup))
        switch sweep {
        case .normal: policy.sweepStretch = 1
        case .relaxed: policy.sweepStretch = 2
        }
        return policy
    }
}
