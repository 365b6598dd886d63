import SeededRandom

@testable import Subscriptions

extension Life {
    /// Apple's answer on a day: every row as it stands, in any order, with what answers differ in besides.
    ///
    /// A forgetful one leaves out what it may of the renewal: see `forgetful(_:at:_:)`.
    func answer(
        at instant: Double, using random: inout Seeded, forgetful isForgetful: Bool = false
    ) -> SubscriptionEvidence {
        let rows = (rows(at: instant).map { disguised($0, &random) } + deviceRows(at: instant, &random))
            .shuffled(using: &random)
        let full = renewal(at: instant)
        let said = isForgetful ? full.flatMap { forgetful($0, at: instant, &random) } : full
        let pending = said.map { [$0] } ?? []
        return SubscriptionEvidence(
            originalTransactionID: id, asOf: day(instant),
            transactions: SubscriptionsTests.answer(instant, rows).transactions,
            renewals: pending.map {
                RenewalRow(path: "pending_renewal_info[0]", asOf: day(instant), originalTransactionID: id, renewal: $0)
            })
    }

    /// What Apple says of the renewal without fields that it said of this period before; of a period that has just been
    /// booked, perhaps nothing.
    private func forgetful(_ renewal: Renewal, at instant: Double, _ random: inout Seeded) -> Renewal? {
        guard let since = pending.last(where: { $0.from <= instant })?.from,
            let before = pending.last(where: { $0.from < since }),
            rows(at: before.from).count == rows(at: instant).count
        else {
            let fresh = Renewal(productID: renewal.productID, renewsToProductID: renewal.productID, willRenew: true)
            return renewal == fresh && Bool.random(using: &random) ? nil : renewal
        }
        func forget<Value: Equatable>(_ field: WritableKeyPath<Renewal, Value?>, in said: inout Renewal) {
            if said[keyPath: field] == before.renewal[keyPath: field], Bool.random(using: &random) {
                said[keyPath: field] = nil
            }
        }
        var said = renewal
        forget(\.renewsToProductID, in: &said)
        forget(\.willRenew, in: &said)
        // Beside the status of renewal or a reason for the end, Apple leaves out a retry only where it is over.
        if said.inBillingRetry == false || said.willRenew == nil && said.expirationIntent == nil {
            forget(\.inBillingRetry, in: &said)
        }
        forget(\.graceExpiresAt, in: &said)
        return said
    }

    /// The same row under another delivery, without its line item, or without what it need not say.
    private func disguised(_ row: TransactionRow, _ random: inout Seeded) -> TransactionRow {
        var row = row
        switch Int.random(in: 0..<8, using: &random) {
        case 0: row.webOrderLineItemID = nil
        case 1: row.transactionID = TransactionID("r\(row.transactionID.text)")
        case 2: row.isTrial = row.isTrial == true ? true : nil
        case 3: row.isIntro = row.isIntro == true ? true : nil
        case 4: row.appAccountToken = "token"
        default: break
        }
        return row
    }

    /// What a device's receipt of some earlier day still says.
    private func deviceRows(at instant: Double, _ random: inout Seeded) -> [TransactionRow] {
        guard Int.random(in: 0..<3, using: &random) == 0 else { return [] }
        let creation = instant * Double.random(in: 0...1, using: &random)
        return rows(at: creation).map { row in
            var row = row
            row.source = .deviceReceipt
            row.path = row.path.replacing("latest_receipt_info", with: "receipt.in_app")
            row.asOf = day(creation)
            row.isUpgraded = false
            row.groupID = nil
            row.offerCodeRefName = nil
            return row
        }
    }
}
