import SeededRandom
import Testing

@testable import Subscriptions

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
        #expect(state?.version == 4, "the restored id was a version too")
        #expect(events.first?.first?.detail["quantity"] == .integer(2))
    }

    @Test("The earliest date that Apple ever gave counts, whatever came first", arguments: 0..<20 as Range<UInt64>)
    func earliestDate(seed: UInt64) {
        var random = Seeded(seed: 40_300 + seed)
        print(random)
        let answers = (0..<Int.random(in: 1...5, using: &random)).map { place -> (Double, TransactionRow) in
            let asOf = Double(place) + 20
            var row = purchase(["a", "b"].randomElement(using: &random) ?? "a", asOf: asOf)
            row.purchasedAt = day(.random(in: 1...15, using: &random))
            row.originalPurchasedAt =
                [nil, Instant(milliseconds: 0), day(.random(in: 0...20, using: &random))]
                .randomElement(using: &random) ?? nil
            row.source = Bool.random(using: &random) ? .latestReceiptInfo : .deviceReceipt
            return (asOf, row)
        }
        let given = answers.flatMap { [$1.purchasedAt, $1.originalPurchasedAt ?? $1.purchasedAt] }
        let earliest = given.filter { $0.milliseconds > 0 }.min()
        for _ in 0..<6 {
            let (state, events) = settle(answers.shuffled(using: &random))
            #expect(state?.purchasedAt == earliest)
            #expect(kinds(events).first == "purchase.made" && Set(kinds(events).dropFirst()).isSubset(of: [""]))
        }
        let states = (0..<6).map { _ in settle(answers.shuffled(using: &random)).state?.facts.terms }
        #expect(Set(states).count == 1, "the whole row is the same")
    }

    /// What a channel says of a purchase at a minute.
    private struct Word {
        let minute: Int
        let isServer: Bool
        let isRefunded: Bool

        var evidence: PurchaseEvidence {
            let instant = day(5 + Double(minute) / 1_440)
            let row = TransactionRow(
                path: isServer ? "7/history[0].signedTransactions[2]" : "latest_receipt_info[0]",
                source: isServer ? .signedText : .latestReceiptInfo, asOf: instant, transactionID: "a",
                originalTransactionID: "p1", productID: "coins", purchasedAt: day(0),
                cancelledAt: isRefunded ? day(4) : nil)
            let key = PurchaseKey(originalTransactionID: "p1", productID: "coins")
            return PurchaseEvidence(key: key, asOf: instant, transactions: [row])
        }
    }

    /// Whether words in the order of their minutes leave a purchase refunded: the newest refund stands until two later words say
    /// that it is gone, the second one ten minutes after it at the earliest. verifyReceipt is heard about its own refunds alone.
    private func isRefunded(_ words: [Word]) -> Bool {
        var refund: Word?
        var isDoubted = false
        for word in words {
            if word.isRefunded {
                (refund, isDoubted) = (word, false)
            } else if let known = refund, word.isServer || !known.isServer {
                if isDoubted, word.minute >= known.minute + 10 { refund = nil }
                isDoubted = true
            }
        }
        return refund != nil
    }

    @Test(
        "A refund is reversed only on the word of a channel that can see it: a history, or the one that showed the refund",
        arguments: 0..<200 as Range<UInt64>)
    func channels(seed: UInt64) {
        var random = Seeded(seed: 42_100 + seed)
        var (state, minute): (PurchaseState?, Int) = (nil, 0)
        var words: [Word] = []
        for _ in 0..<14 {
            minute += [1, 4, 11].randomElement(using: &random) ?? 1
            words.append(
                Word(
                    minute: minute, isServer: .random(using: &random),
                    isRefunded: Int.random(in: 0..<3, using: &random) == 0))
            state = words.last.flatMap { reconcilePurchase(state, with: $0.evidence)?.state }
            #expect((state?.revokedAt != nil) == isRefunded(words), "\(random): \(words)")
        }
    }

    @Test(
        "What verifyReceipt shows without a refund does not hide one of the Server API, whichever came first and is newer"
    )
    func blind() {
        let refund = Word(minute: 5, isServer: true, isRefunded: true)
        for minute in [4, 5, 6] {
            let shown = Word(minute: minute, isServer: false, isRefunded: false)
            for words in [[refund, shown], [shown, refund]] {
                let state = words.reduce(nil as PurchaseState?) { reconcilePurchase($0, with: $1.evidence)?.state }
                #expect(state?.revokedAt == day(4) && state?.refundRetractedAt == nil)
                #expect(state?.doubts(in: shown.evidence) == false, "nothing is asked again")
            }
        }
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
