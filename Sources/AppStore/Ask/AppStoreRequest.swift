/// One receipt to ask Apple about. Printing it never shows the receipt or a secret.
package struct AppStoreRequest: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The receipt in standard Base64 on one line: `ReceiptData.base64`, or Apple's `latest_receipt`.
    package var receipt: String
    /// The app's shared secret; without one `password` is left out, which Apple accepts for receipts without subscriptions.
    package var secret: String?
    /// The secret before the last rotation; tried once when Apple answers 21004.
    package var previousSecret: String?
    /// Where to ask first: what was remembered for this receipt, else production (App Review uses production builds).
    package var askFirst: Endpoint
    /// Whether sandbox receipts are accepted. When false, sandbox is never asked and 21007 is final.
    package var sandboxAllowed: Bool

    /// A request; everything but the receipt has a default.
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

    /// What may be printed.
    package var description: String {
        "AppStoreRequest(\(receipt.utf8.count) characters, askFirst: \(askFirst.rawValue), sandboxAllowed: \(sandboxAllowed))"
    }

    /// What may be printed.
    package var debugDescription: String { description }

    /// What may be dumped.
    package var customMirror: Mirror {
        Mirror(self, children: ["askFirst": askFirst, "sandboxAllowed": sandboxAllowed])
    }
}
