import Subscriptions
import Testing

@Suite("One-time purchases have states and events of their own") struct PurchaseTests {
    private func purchase(
        _ transaction: String, original: String = "p1", product: ProductID = "coins", asOf: Double,
        cancelled: Double? = nil
    ) -> TransactionRow {
        TransactionRow(
            path: "receipt.in_app[0]", source: .deviceReceipt, asOf: day(asOf),
            transactionID: TransactionID(transaction), originalTransactionID: OriginalTransactionID(original),
            productID: product, quantity: 2, purchasedAt: day(0), cancelledAt: cancelled.map(day))
    }

    private func settle(_ answers: [(Double, TransactionRow)]) -> (state: PurchaseState?, events: [[Event]]) {
        var state: PurchaseState?
        var events: [[Event]] = []
        for (asOf, row) in answers {
            let evidence = Evidence(environment: .production, asOf: day(asOf), transactions: [row])
            guard let slice = evidence.purchases.first, let result = reconcilePurchase(state, with: slice) else {
                continue
            }
            #expect(reconcilePurchase(result.state, with: slice)?.changed == false)
            state = result.state
            events.append(result.events)
        }
        return (state, events)
    }

    @Test("A purchase is made, restored and refunded, and its refund is reversed")
    func madeRestoredRefundedReversed() {
        func server(_ asOf: Double) -> TransactionRow {
            var row = purchase("a", asOf: asOf)
            row.source = .latestReceiptInfo
            return row
        }
        let (state, events) = settle([
            (1, purchase("a", asOf: 1)), (2, purchase("b", asOf: 2)), (4, purchase("b", asOf: 4, cancelled: 3)),
            (5, purchase("b", asOf: 1)), (9, server(9)), (9.001, server(9.001)), (9.01, server(9.01)),
        ])
        #expect(kinds(events) == ["purchase.made", "", "purchase.refunded", "", "", "refund.reversed", ""])
        #expect(state?.facts.transactionIDs == ["a", "b"])
        #expect(state?.quantity == 2)
        #expect(state?.version == 5, "the restored id was a version too")
        #expect(events.first?.first?.detail["quantity"] == .integer(2))
    }

    @Test("A purchase that is refunded at first sight has both events")
    func aPurchaseRefundedAtFirstSightTellsBoth() {
        #expect(
            kinds(settle([(4, purchase("a", asOf: 4, cancelled: 3))]).events) == ["purchase.made purchase.refunded"])
    }

    @Test("The end of what another customer bought is no refund")
    func shared() {
        for ownership in [Ownership.familyShared, .assigned, .unknown("BORROWED"), .purchased] {
            var made = purchase("a", asOf: 1)
            made.ownership = ownership
            var revoked = purchase("a", asOf: 4, cancelled: 3)
            revoked.ownership = ownership
            let end = ownership == .purchased ? "purchase.refunded" : "family.revoked"
            #expect(kinds(settle([(1, made), (4, revoked)]).events) == ["purchase.made", end])
            #expect(kinds(settle([(4, revoked)]).events) == ["purchase.made \(end)"])
        }
    }

    @Test("Evidence keeps purchases apart and out of subscriptions")
    func evidenceKeepsPurchasesApartAndOutOfSubscriptions() {
        let evidence = Evidence(
            environment: .sandbox, asOf: day(1),
            transactions: [
                purchase("c", original: "p2", asOf: 1), purchase("a", asOf: 1), purchase("b", product: "gems", asOf: 1),
                row("1", 0, 30),
            ])
        #expect(evidence.subscriptions == [subscriptionID])
        #expect(evidence.purchases.map(\.key.productID) == ["coins", "gems", "coins"])
        #expect(evidence.purchases.last?.key.originalTransactionID == "p2")
        #expect(evidence.slice(of: subscriptionID).transactions.count == 1)
    }
}
