/// A notification of version 2 (Apple: "responseBodyV2DecodedPayload"), with the texts within it.
package struct SignedNotification: Sendable, Hashable {
    /// When it was signed, in milliseconds since 1970.
    package let signedAt: Int64
    /// `notificationType`, raw.
    package let kind: String
    /// `subtype`, raw.
    package let subkind: String?
    /// `notificationUUID`: the same in every repetition.
    package let uuid: String
    /// `bundleId` of what it is about.
    package let bundleID: String?
    /// `appAppleId`; absent in the sandbox.
    package let appleAppID: String?
    /// `environment`, raw.
    package let environment: String?
    /// `status` of the subscription, 1 to 5.
    package let status: Int?
    /// `consumptionRequestReason`, raw.
    package let consumptionRequestReason: String?
    /// The transaction within it.
    package let transaction: SignedTransaction?
    /// The renewal information within it.
    package let renewal: SignedRenewal?

    /// Reads payloads that were verified when they came; nil if the outer one is no notification, or an inner one cannot
    /// be read.
    package init?(payload: [UInt8], transaction: [UInt8]?, renewal: [UInt8]?) {
        guard let fields = PayloadFields(payload), let kind = fields.text("notificationType"),
            let uuid = fields.text("notificationUUID"), let signedAt = fields.instant("signedDate")
        else { return nil }
        let data = fields.object("data") ?? fields.object("summary") ?? fields.object("appData")
        self.signedAt = signedAt
        self.kind = kind
        self.uuid = uuid
        subkind = fields.text("subtype")
        bundleID = data?.text("bundleId")
        appleAppID = data?.text("appAppleId")
        environment = data?.text("environment")
        status = data?.integer("status").flatMap { Int(exactly: $0) }
        consumptionRequestReason = data?.text("consumptionRequestReason")
        self.transaction = transaction.flatMap { SignedTransaction(payload: $0) }
        self.renewal = renewal.flatMap { SignedRenewal(payload: $0) }
        guard (transaction == nil) == (self.transaction == nil), (renewal == nil) == (self.renewal == nil) else {
            return nil
        }
    }
}

extension SignedNotification {
    /// Reads the claims that were kept of a notification: an object each for `notification`, `transaction` and `renewal`.
    package init?(claims: String) {
        guard let document = try? JSONReader.read(Array(claims.utf8)), document.nodes[JSONDocument.root].isObject else {
            return nil
        }
        let members = document.members(JSONDocument.root)
        func part(_ name: String) -> [UInt8]? {
            members[name].flatMap { index in
                document.nodes[index].isObject ? Array(document.bytes[document.nodes[index].content]) : nil
            }
        }
        guard let payload = part("notification") else { return nil }
        self.init(payload: payload, transaction: part("transaction"), renewal: part("renewal"))
    }
}

extension SignedText {
    /// The signed texts that a notification holds, in compact form, not verified.
    package var innerTexts: (transaction: String?, renewal: String?) {
        let data = PayloadFields(payload)?.object("data")
        return (data?.text("signedTransactionInfo"), data?.text("signedRenewalInfo"))
    }
}
