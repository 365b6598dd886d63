/// What is kept of signed texts once they are old: the claims that facts rest on, and their neighbours that say what was
/// bought, when, by which offer and at which price. Names of devices, storefronts and Apple Accounts are not among them.
enum KeptClaims {
    /// Claims of transactions and of renewal information.
    private static let signed: Set<String> = [
        "transactionId", "originalTransactionId", "webOrderLineItemId", "bundleId", "environment", "productId", "type",
        "subscriptionGroupIdentifier", "quantity", "purchaseDate", "originalPurchaseDate", "expiresDate",
        "revocationDate", "revocationReason", "revocationPercentage", "revocationType", "isUpgraded", "offerType",
        "offerIdentifier", "offerDiscountType", "offerPeriod", "inAppOwnershipType", "appAccountToken", "price",
        "currency", "transactionReason", "signedDate", "autoRenewProductId", "autoRenewStatus", "expirationIntent",
        "isInBillingRetryPeriod", "gracePeriodExpiresDate", "priceIncreaseStatus", "renewalDate", "renewalPrice",
    ]
    /// Claims of notifications.
    private static let notification: Set<String> = [
        "notificationType", "subtype", "notificationUUID", "version", "signedDate",
    ]
    /// Claims within a notification: what it is about.
    private static let subject: Set<String> = [
        "bundleId", "appAppleId", "environment", "status", "consumptionRequestReason",
    ]

    /// Returns the kept claims of a transaction or of renewal information; nil for anything else than an object.
    static func signed(_ payload: [UInt8]) -> [UInt8]? {
        guard let text = try? JSONReader.read(payload), text.nodes[JSONDocument.root].isObject else { return nil }
        return object(members(of: text, at: JSONDocument.root, named: signed))
    }

    /// Returns the kept claims of a notification's payload; nil for anything else than an object.
    static func notification(_ payload: [UInt8]) -> [UInt8]? {
        guard let text = try? JSONReader.read(payload), text.nodes[JSONDocument.root].isObject else { return nil }
        var kept = members(of: text, at: JSONDocument.root, named: notification)
        let values = text.members(JSONDocument.root)
        for name in ["data", "summary", "appData"] {
            guard let index = values[name], text.nodes[index].isObject else { continue }
            kept.append(Array("\"\(name)\":".utf8) + object(members(of: text, at: index, named: subject)))
        }
        return object(kept)
    }

    /// Returns the members of an object with these names whose values are scalars, as they came.
    private static func members(of text: JSONDocument, at index: Int, named names: Set<String>) -> [[UInt8]] {
        text.members(index).sorted { $0.value < $1.value }.compactMap { name, value in
            guard names.contains(name) else { return nil }
            let node = text.nodes[value]
            let content = text.bytes[node.content]
            switch node.kind {
            case .string, .escapedString: return Array("\"\(name)\":\"".utf8) + content + [UInt8(ascii: "\"")]
            case .number, .boolean: return Array("\"\(name)\":".utf8) + content
            case .null, .array, .object: return nil
            }
        }
    }

    private static func object(_ members: [[UInt8]]) -> [UInt8] {
        [UInt8(ascii: "{")] + members.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "}")]
    }
}

extension SignedNotification {
    /// Returns what is kept of a packed notification once it is old, as `init(claims:)` reads it; nil where it cannot be
    /// read.
    package static func keptClaims(ofPacked packed: [UInt8]) -> String? {
        guard let end = packed.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let payload = Array(packed[(end + 1)...])
        guard let outer = KeptClaims.notification(payload) else { return nil }
        let data = PayloadFields(payload)?.object("data")
        var parts = [#""notification":"# + String(decoding: outer, as: UTF8.self)]
        for (name, claim) in [("transaction", "signedTransactionInfo"), ("renewal", "signedRenewalInfo")] {
            guard let text = data?.text(claim) else { continue }
            guard let inner = ShortText.payload(of: Array(text.utf8)).flatMap(KeptClaims.signed) else { return nil }
            parts.append("\"\(name)\":" + String(decoding: inner, as: UTF8.self))
        }
        return "{\(parts.joined(separator: ","))}"
    }
}
