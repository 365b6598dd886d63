/// The readable part of a receipt: the attributes Apple documents for local validation.
struct ReceiptPayload: Sendable {
    /// A receipt carries at most this many rows, the newest.
    static let rowsMax = 30

    let bundleID: String
    let account: Account
    let identity: ReceiptIdentity

    var bytes: [UInt8] {
        let kind =
            switch account.environment {
            case .production: "Production"
            case .sandbox: "ProductionSandbox"
            }
        let appLevel =
            attribute(0, DERWriter.utf8(kind)) + attribute(2, DERWriter.utf8(bundleID))
            + attribute(3, DERWriter.utf8("42")) + attribute(12, DERWriter.ia5(AppleDates.internet(identity.creation)))
        let rows = account.begun.flatMap { life in
            life.periods.filter { $0.bookedAt <= identity.creation }.suffix(Self.rowsMax)
                .map { attribute(17, row(of: $0, life)) }
        }
        return DERWriter.element(DERWriter.setTag, appLevel + (rows + purchaseRows).flatMap { $0 })
    }

    private var purchaseRows: [[UInt8]] {
        account.purchases.purchases.filter { $0.isListed(at: identity.creation) }.suffix(Self.rowsMax).map { purchase in
            let id = account.ids.purchase(purchase.ordinal)
            return attribute(
                17,
                DERWriter.element(
                    DERWriter.setTag,
                    attribute(1701, DERWriter.integer(1))
                        + attribute(1702, DERWriter.utf8(purchase.product.identifier(in: bundleID)))
                        + attribute(1703, DERWriter.utf8(id))
                        + attribute(1704, DERWriter.ia5(AppleDates.internet(purchase.at)))
                        + attribute(1705, DERWriter.utf8(id))))
        }
    }

    private func row(of period: Period, _ life: Life) -> [UInt8] {
        let ids = life.ids
        let delivered = ids.transactionID(of: period.ordinal, restore: identity.restore)
        let lineItem =
            life.script.isFamilyShared
            ? [] : attribute(1711, DERWriter.integer(Int64(ids.webOrderLineItemID(of: period.ordinal)) ?? 0))
        return DERWriter.element(
            DERWriter.setTag,
            attribute(1701, DERWriter.integer(1))
                + attribute(1702, DERWriter.utf8(period.product.identifier(in: bundleID)))
                + attribute(1703, DERWriter.utf8(delivered))
                + attribute(1704, DERWriter.ia5(AppleDates.internet(period.purchase)))
                + attribute(1705, DERWriter.utf8(ids.originalTransactionID))
                + attribute(1708, DERWriter.ia5(AppleDates.internet(period.expires(asOf: identity.creation))))
                + lineItem)
    }

    private func attribute(_ type: Int64, _ value: [UInt8]) -> [UInt8] {
        DERWriter.element(
            DERWriter.sequenceTag, DERWriter.integer(type) + DERWriter.integer(1) + DERWriter.octets(value))
    }
}
