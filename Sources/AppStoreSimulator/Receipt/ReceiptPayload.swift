/// The readable part of a receipt: the attributes Apple documents for local validation.
struct ReceiptPayload: Sendable {
    /// A receipt carries at most this many rows, the newest.
    static let rowsMax = 30

    let bundleID: String
    let customer: Customer
    let creation: Moment

    var bytes: [UInt8] {
        let kind =
            switch customer.environment {
            case .production: "Production"
            case .sandbox: "ProductionSandbox"
            }
        let appLevel =
            attribute(0, DERWriter.utf8(kind)) + attribute(2, DERWriter.utf8(bundleID))
            + attribute(3, DERWriter.utf8("42")) + attribute(12, DERWriter.ia5(AppleDates.internet(creation)))
        let booked = customer.life.periods.filter { $0.bookedAt <= creation }.suffix(Self.rowsMax)
        let rows = booked.map { attribute(17, row(of: $0)) } + lifetimeRows
        return DERWriter.element(DERWriter.setTag, appLevel + rows.flatMap { $0 })
    }

    private var lifetimeRows: [[UInt8]] {
        guard let lifetime = customer.lifetime, lifetime.purchase <= creation else { return [] }
        let id = customer.ids.lifetimeTransactionID
        return [
            attribute(
                17,
                DERWriter.element(
                    DERWriter.setTag,
                    attribute(1701, DERWriter.integer(1))
                        + attribute(1702, DERWriter.utf8(bundleID + "." + SubscriptionProduct.lifetimeSuffix))
                        + attribute(1703, DERWriter.utf8(id))
                        + attribute(1704, DERWriter.ia5(AppleDates.internet(lifetime.purchase)))
                        + attribute(1705, DERWriter.utf8(id))))
        ]
    }

    private func row(of period: Period) -> [UInt8] {
        let ids = customer.ids
        let delivered =
            customer.life.script.hasRestored
            ? ids.restoredTransactionID(of: period.ordinal) : ids.transactionID(of: period.ordinal)
        let lineItem =
            customer.life.script.isFamilyShared
            ? [] : attribute(1711, DERWriter.integer(Int64(ids.webOrderLineItemID(of: period.ordinal)) ?? 0))
        return DERWriter.element(
            DERWriter.setTag,
            attribute(1701, DERWriter.integer(1))
                + attribute(1702, DERWriter.utf8(period.product.identifier(in: bundleID)))
                + attribute(1703, DERWriter.utf8(delivered))
                + attribute(1704, DERWriter.ia5(AppleDates.internet(period.purchase)))
                + attribute(1705, DERWriter.utf8(ids.originalTransactionID))
                + attribute(1708, DERWriter.ia5(AppleDates.internet(period.expires(asOf: creation)))) + lineItem)
    }

    private func attribute(_ type: Int64, _ value: [UInt8]) -> [UInt8] {
        DERWriter.element(
            DERWriter.sequenceTag, DERWriter.integer(type) + DERWriter.integer(1) + DERWriter.octets(value))
    }
}
