import Foundation
package import Postgres
package import Subscriptions
package import Tracking

extension LedgerIntake {
    /// Returns what a stored receipt holds, and what it gave a customer.
    package func purchases(in receipt: ReceiptID, for customer: String) async throws -> ReceiptPurchases {
        try await standing(of: nil, in: ServedLedger.app, receipt, for: customer).contents
    }
}

/// A migrated ledger with two apps and a key without a limit for all of it.
package struct ServedLedger: Sendable {
    /// The app.
    package static let app = BundleID("com.example.app")

    /// The ledger.
    package let ledger: SubscriptionLedger
    /// Its database.
    package let database: Database
    /// The secret of a key that may do everything.
    package let secret: String

    /// Runs SQL as it stands.
    package func run(_ sql: String) async throws {
        try await database.transaction { try $0.script(sql) }
    }

    /// A key's secret.
    package func key(_ scope: Scope, for app: BundleID? = nil, rate: RequestRate = RequestRate(perSecond: 0))
        async throws
        -> String
    {
        try await ledger.apps.createKey(scope: scope, for: app, rate: rate).secret
    }

    /// Lends one, in a database that tests use one after the other.
    package static func with(_ body: @escaping @Sendable (ServedLedger) async throws -> Void) async throws {
        try await withReusedDatabase { database, _ in
            let ledger = SubscriptionLedger(
                database: database, seal: try SecretSeal(masterKey: [UInt8](repeating: 7, count: 32)))
            try await ledger.apps.add(Self.app, secret: "shared secret", callsPerSecond: 0)
            try await ledger.apps.add("com.example.other", callsPerSecond: 0)
            let key = try await ledger.apps.createKey(scope: .admin, for: nil, rate: RequestRate(perSecond: 0))
            try await body(ServedLedger(ledger: ledger, database: database, secret: key.secret))
        }
    }
}

/// What a device might send, and what Apple might say of it.
package enum Sample {
    /// DER of a shape that could be a receipt, in base64; different for different numbers.
    package static func receipt(_ number: Int = 0) -> String {
        Data([0x30, 0x82, 0x01, 0x00] + [UInt8](repeating: UInt8(0x2A + number), count: 256)).base64EncodedString()
    }

    /// The body of an upload.
    package static func upload(_ receipt: String, customer: String = "kim") -> String {
        #"{"customer":"\#(customer)","receipt":"\#(receipt)"}"#
    }

    /// Apple vouches for one monthly subscription that runs until tomorrow.
    package static func verified(subscription: String = "100", app: String = "com.example.app") -> String {
        let now = Int64(Date.now.timeIntervalSince1970) * 1000
        let (bought, ends) = (now - 86_400_000, now + 86_400_000)
        return """
            {"status":0,"environment":"Production",
             "receipt":{"bundle_id":"\(app)","request_date_ms":"\(now)","receipt_creation_date_ms":"\(bought)","in_app":[]},
             "latest_receipt_info":[{"product_id":"monthly","quantity":"1","transaction_id":"\(subscription)",
              "original_transaction_id":"\(subscription)","web_order_line_item_id":"\(subscription)",
              "purchase_date_ms":"\(bought)","original_purchase_date_ms":"\(bought)","expires_date_ms":"\(ends)",
              "is_trial_period":"false","is_in_intro_offer_period":"false","subscription_group_identifier":"2000"}],
             "pending_renewal_info":[{"original_transaction_id":"\(subscription)","product_id":"monthly",
              "auto_renew_product_id":"monthly","auto_renew_status":"1"}]}
            """
    }
}

extension SubscriptionLedger {
    /// Returns the value of a metric that the ledger gives, where its labels hold these; nil where there is none.
    package func gauge(_ metric: Metric, _ labels: (String, String)...) async throws -> Double? {
        try await operations.gauges().first { gauge in
            gauge.metric == metric && labels.allSatisfy { label in gauge.labels.contains { $0 == label } }
        }?.value
    }
}
