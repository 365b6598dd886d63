import Foundation

/// The transaction receipt of iOS 6: an old property list with the store's trailer as its signature.
extension ReceiptCodec {
    /// Returns the text of a receipt for one period of the subscription.
    func encodeLegacy(_ identity: ReceiptIdentity, period: Period, life: Life, bundleID: String) -> [UInt8] {
        let info = """
            {
            \t"original-transaction-id" = "\(life.ids.originalTransactionID)";
            \t"transaction-id" = "\(life.ids.transactionID(of: period.ordinal))";
            \t"web-order-line-item-id" = "\(life.ids.webOrderLineItemID(of: period.ordinal))";
            \t"product-id" = "\(period.product.identifier(in: bundleID))";
            \t"bid" = "\(bundleID)";
            \t"purchase-date-ms" = "\(period.purchase.milliseconds)";
            \t"expires-date" = "\(period.expires(asOf: identity.creation).milliseconds)";
            }
            """
        let purchaseInfo = Data(info.utf8).base64EncodedString()
        let identified = Array(trailer(of: identity).dropLast(8))
        let signature = identified + bigEndian(checksum(Array(purchaseInfo.utf8) + identified))
        let environment = identity.environment == .sandbox ? "\n\t\"environment\" = \"Sandbox\";" : ""
        return Array(
            """
            {
            \t"signature" = "\(Data(signature).base64EncodedString())";
            \t"purchase-info" = "\(purchaseInfo)";\(environment)
            \t"pod" = "100";
            \t"signing-status" = "0";
            }
            """.utf8)
    }

    func read(propertyList bytes: [UInt8]) -> Reading {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let signature = text.value(of: "signature").flatMap({ Data(base64Encoded: $0) }),
            let purchaseInfo = text.value(of: "purchase-info")
        else { return .malformed }
        let trailer = Array(signature)
        return read(trailer: trailer, form: .legacy, signed: Array(purchaseInfo.utf8) + trailer.dropLast(8))
    }
}

extension String {
    fileprivate func value(of key: String) -> String? {
        guard let start = range(of: "\"\(key)\" = \"")?.upperBound,
            let end = self[start...].firstIndex(of: "\"")
        else { return nil }
        return String(self[start..<end])
    }
}
