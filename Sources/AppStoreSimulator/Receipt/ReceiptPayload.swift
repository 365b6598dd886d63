/// The store's data about a receipt it once made.
struct ReceiptIdentity: Sendable, Hashable {
    enum Form: Sendable {
        case unified
        /// The transaction receipt of iOS 6.
        case legacy
    }

    /// The index of the account.
    let customer: Int
    let creation: StoreTime
    let environment: StoreEnvironment
    /// The number of the restore that wrote it, from 1; 0 means none.
    var restore = 0
    var form = Form.unified
    /// Whether another app of the same store wrote it.
    var isForeign = false
    /// Whether it is the receipt of an app with another secret, which names this app too.
    var isDisguised = false
}

/// The readable part of a receipt: the attributes Apple documents for local validation.
struct ReceiptPayload: Sendable {
    /// The most rows of a kind in a receipt; the newest are kept.
    static let rowsMax = 30

    let bundleID: String
    let account: Account
    let identity: ReceiptIdentity

    /// Writes the payload. As always with ``DERWriter``, the last element comes first.
    func write(to der: inout DERWriter) {
        der.element(DERWriter.setTag) { der in
            let bought = account.purchases.purchases.filter { account.holds($0, in: identity) }
            for purchase in bought.suffix(Self.rowsMax).reversed() { row(of: purchase, to: &der) }
            for life in account.begun.reversed() {
                let booked = life.periods.filter { $0.bookedAt <= identity.creation }
                for period in booked.suffix(Self.rowsMax).reversed() { row(of: period, life, to: &der) }
            }
            attribute(12, to: &der) { $0.ia5(AppleDates.internet(identity.creation)) }
            attribute(3, to: &der) { $0.utf8("42") }
            if identity.isDisguised { attribute(2, to: &der) { $0.utf8("\(bundleID).other") } }
            attribute(2, to: &der) { $0.utf8(bundleID) }
            attribute(0, to: &der) { $0.utf8(kind) }
        }
    }

    private var kind: String {
        switch account.environment {
        case .production: "Production"
        case .sandbox: "ProductionSandbox"
        }
    }

    private func row(of purchase: OneTimePurchase, to der: inout DERWriter) {
        let restoredAt = account.restored(purchase, in: identity)
        let id = account.ids.purchase(purchase.ordinal, restore: restoredAt == nil ? 0 : identity.restore)
        row(to: &der) { der in
            if restoredAt != nil { attribute(1706, to: &der) { $0.ia5(AppleDates.internet(purchase.at)) } }
            attribute(1705, to: &der) { $0.utf8(account.ids.purchase(purchase.ordinal)) }
            attribute(1704, to: &der) { $0.ia5(AppleDates.internet(restoredAt?.wholeSecond ?? purchase.at)) }
            attribute(1703, to: &der) { $0.utf8(id) }
            attribute(1702, to: &der) { $0.utf8(purchase.product.identifier(in: bundleID)) }
            attribute(1701, to: &der) { $0.integer(Int64(purchase.order.quantity.count)) }
        }
    }

    private func row(of period: Period, _ life: Life, to der: inout DERWriter) {
        let ids = life.ids
        row(to: &der) { der in
            if !life.script.isMember {
                attribute(1711, to: &der) { $0.integer(Int64(ids.webOrderLineItemNumber(of: period.ordinal))) }
            }
            attribute(1708, to: &der) { $0.ia5(AppleDates.internet(period.expires(asOf: identity.creation))) }
            attribute(1705, to: &der) { $0.utf8(ids.originalTransactionID) }
            attribute(1704, to: &der) { $0.ia5(AppleDates.internet(period.purchase)) }
            attribute(1703, to: &der) { $0.utf8(ids.transactionID(of: period.ordinal, restore: identity.restore)) }
            attribute(1702, to: &der) { $0.utf8(period.product.identifier(in: bundleID)) }
            attribute(1701, to: &der) { $0.integer(1) }
        }
    }

    private func row(to der: inout DERWriter, _ attributes: (inout DERWriter) -> Void) {
        attribute(17, to: &der) { $0.element(DERWriter.setTag, attributes) }
    }

    private func attribute(_ type: Int64, to der: inout DERWriter, _ value: (inout DERWriter) -> Void) {
        der.element(DERWriter.sequenceTag) { der in
            der.octets(value)
            der.integer(1)
            der.integer(type)
        }
    }
}
