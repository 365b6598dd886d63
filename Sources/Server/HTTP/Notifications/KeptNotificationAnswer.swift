import Foundation
import Hummingbird
import Ledger

/// The answer to a notification that was stored.
struct KeptNotificationAnswer: Sendable {
    /// How far the notification is believed.
    enum Verification: String, Sendable {
        /// Apple signed it, and it is about this app: what it states is a fact.
        case verified
        /// It has the app's shared secret: the receipt in it is asked about.
        case password
        /// It is a reason to check soon, and nothing more.
        case unverified
    }

    let verification: Verification
    let effect: NotificationEffect
    let reason: String?

    init(_ verification: Verification, _ effect: NotificationEffect, reason: String? = nil) {
        (self.verification, self.effect, self.reason) = (verification, effect, reason)
    }

    /// The response that says it.
    var response: Response {
        Response([
            "verification": .string(verification.rawValue), "effect": .string(effect.rawValue),
            "reason": reason.map { .string($0) } ?? .null,
        ])
    }
}

/// The fields of a notification of version 1 that are used and never stored.
struct VersionOneFields: Sendable {
    /// The longest receipt and the longest password, in bytes.
    private static let (receiptBytesMax, passwordBytesMax) = (1 << 20, 256)

    /// `password`.
    let password: String?
    /// `unified_receipt.latest_receipt`, or `latest_receipt` of bodies before March 2021.
    let latestReceipt: String?

    /// Reads the body; nil where it is no JSON object.
    init?(_ body: [UInt8]) {
        guard let fields = JSONFields(Data(body)) else { return nil }
        password = fields.text("password", bytesMax: Self.passwordBytesMax)
        latestReceipt =
            fields.fields("unified_receipt")?.text("latest_receipt", bytesMax: Self.receiptBytesMax)
            ?? fields.text("latest_receipt", bytesMax: Self.receiptBytesMax)
    }
}
