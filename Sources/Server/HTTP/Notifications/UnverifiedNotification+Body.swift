import Foundation
import Ledger
import Subscriptions

extension UnverifiedNotification {
    /// The longest word or id, in bytes. Apple's own words are much shorter, and a longer one is ignored.
    fileprivate static let wordBytesMax = 64

    /// Reads the body of a notification. Throws a problem when it does not have the form of Apple's notifications.
    ///
    /// Docs: https://developer.apple.com/documentation/appstoreservernotifications (`responseBodyV2`,
    /// `responseBodyV1`).
    init(notification bytes: [UInt8]) throws(Problem) {
        // PostgreSQL stores the text unchanged, so it must be JSON to PostgreSQL: UTF-8 without a byte order mark.
        guard let text = String(validating: bytes, as: UTF8.self), text.first != "\u{FEFF}",
            let body = JSONFields(Data(bytes))
        else { throw Problem(.invalid, "The body is not a JSON object.") }
        // Only version 1 contains Apple's `password`, but any body that has one is stored without it.
        let kept = body.withoutPasswords ?? text
        if let payload = body.text("signedPayload", bytesMax: bytes.count) {
            try self.init(signedPayload: payload, body: kept)
        } else {
            try self.init(unsigned: body, kept: kept)
        }
    }

    /// Reads version 2. The signature is not verified, because the content neither grants nor ends anything.
    private init(signedPayload: String, body: String) throws(Problem) {
        guard let payload = JSONFields(payloadOf: signedPayload), let kind = payload.word("notificationType") else {
            throw Problem(.invalid, "The body's signedPayload is not a signed notification of version 2.")
        }
        let data = payload.fields("data") ?? payload.fields("summary") ?? payload.fields("appData")
        let transaction = data?.signed("signedTransactionInfo")
        let renewal = data?.signed("signedRenewalInfo")
        let environment =
            data?.word("environment") ?? transaction?.word("environment") ?? renewal?.word("environment")
        self.init(
            version: .two, kind: kind, subkind: payload.word("subtype"), appleID: payload.word("notificationUUID"),
            bundleID: data?.text("bundleId", bytesMax: 255).map { BundleID($0) },
            environment: environment.flatMap(StoreEnvironment.init(rawValue:)),
            originalTransactionID: (transaction?.word("originalTransactionId")
                ?? renewal?.word("originalTransactionId")).map { OriginalTransactionID($0) },
            body: body)
    }

    /// Reads version 1. The subscription is the one named at the top level, else the one of the newest row.
    private init(unsigned body: JSONFields, kept: String) throws(Problem) {
        guard let kind = body.word("notification_type") else {
            throw Problem(.invalid, "The body has neither signedPayload nor notification_type.")
        }
        let unified = body.fields("unified_receipt")
        let named =
            body.word("original_transaction_id") ?? unified?.newestRow?.word("original_transaction_id")
            ?? body.fields("latest_receipt_info")?.word("original_transaction_id")
            ?? body.fields("latest_expired_receipt_info")?.word("original_transaction_id")
        self.init(
            version: .one, kind: kind, bundleID: body.text("bid", bytesMax: 255).map { BundleID($0) },
            environment: (body.word("environment") ?? unified?.word("environment")).flatMap(StoreEnvironment.init(v1:)),
            originalTransactionID: named.map { OriginalTransactionID($0) },
            body: kept)
    }
}

extension StoreEnvironment {
    /// Reads the environment of version 1, which says PROD where everything else says Production.
    fileprivate init?(v1 word: String) {
        switch word.lowercased() {
        case "prod", "production": self = .production
        case "sandbox": self = .sandbox
        default: return nil
        }
    }
}

extension JSONFields {
    /// Returns a word or an id: text or a whole number of at most `wordBytesMax` bytes.
    fileprivate func word(_ name: String) -> String? { text(name, bytesMax: UnverifiedNotification.wordBytesMax) }

    /// Returns the payload of a signed text in a field.
    fileprivate func signed(_ name: String) -> JSONFields? {
        text(name, bytesMax: .max).flatMap(JSONFields.init(payloadOf:))
    }

    /// The row of `latest_receipt_info` with the latest purchase date.
    fileprivate var newestRow: JSONFields? {
        rows("latest_receipt_info").max { left, right in
            (left.integer("purchase_date_ms") ?? 0) < (right.integer("purchase_date_ms") ?? 0)
        }
    }
}
