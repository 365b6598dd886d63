/// The App Store as Perennial sees it: one question each to verifyReceipt and to the Server API. A struct with closures, so
/// that tests can pass their own.
package struct AppStoreClient: Sendable {
    /// Asks Apple about a receipt. Never throws: an outage is an answer too.
    package var verify: @Sendable (AppStoreRequest) async -> AppStoreAnswer
    /// Asks the Server API. Never throws either.
    package var server: ServerAPIClient

    /// Creates a client that answers with `verify`, and by `server` where there is one.
    package init(
        server: ServerAPIClient = .none, verify: @escaping @Sendable (AppStoreRequest) async -> AppStoreAnswer
    ) {
        self.verify = verify
        self.server = server
    }
}

/// A request to Apple about one receipt. Printing it never shows the receipt or a secret.
package struct AppStoreRequest: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The receipt in standard Base64 on one line: `ReceiptData.base64`, or Apple's `latest_receipt`.
    package var receipt: String
    /// The app's shared secret; if nil, `password` is omitted, which Apple accepts for receipts without subscriptions.
    package var secret: String?
    /// The secret before the last rotation; tried once if Apple answers 21004.
    package var previousSecret: String?
    /// The store to ask first: the one remembered for this receipt, else production (App Review uses production
    /// builds).
    package var askFirst: Endpoint
    /// Whether sandbox receipts are accepted. If false, sandbox is never asked and 21007 is final.
    package var sandboxAllowed: Bool

    /// Creates a request; every argument except the receipt has a default.
    package init(
        receipt: String, secret: String? = nil, previousSecret: String? = nil,
        askFirst: Endpoint = .production, sandboxAllowed: Bool = true
    ) {
        self.receipt = receipt
        self.secret = secret
        self.previousSecret = previousSecret
        self.askFirst = askFirst
        self.sandboxAllowed = sandboxAllowed
    }

    /// A description that is safe to print.
    package var description: String {
        "AppStoreRequest(\(receipt.utf8.count) characters, askFirst: \(askFirst.rawValue), sandboxAllowed: \(sandboxAllowed))"
    }

    /// A description that is safe to print.
    package var debugDescription: String { description }

    /// A mirror that is safe to dump.
    package var customMirror: Mirror {
        Mirror(self, children: ["askFirst": askFirst, "sandboxAllowed": sandboxAllowed])
    }
}

/// One of Apple's two stores. Their ids are separate namespaces.
package enum Endpoint: String, Sendable, Hashable, CaseIterable, Codable {
    /// Real purchases.
    case production = "Production"
    /// Test purchases: development builds, TestFlight and App Review.
    case sandbox = "Sandbox"

    /// The other one of the two stores.
    package var other: Endpoint {
        switch self {
        case .production: .sandbox
        case .sandbox: .production
        }
    }
}
