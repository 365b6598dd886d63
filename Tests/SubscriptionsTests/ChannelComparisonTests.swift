import Testing

@testable import Subscriptions

@Suite("What verifyReceipt and the Server API state is compared fact by fact")
struct ChannelComparisonTests {
    private static func day(_ day: Double) -> Instant { Instant(milliseconds: Int64(day * 86_400_000)) }

    private static func period(_ source: EvidenceSource, _ number: Int = 1) -> TransactionRow {
        var row = TransactionRow(
            path: "row", source: source, asOf: day(20), transactionID: TransactionID("\(source)\(number)"),
            originalTransactionID: "s1", webOrderLineItemID: WebOrderLineItemID("w\(number)"), productID: "weekly",
            purchasedAt: day(Double(number) * 7), expiresAt: day(Double(number) * 7 + 7))
        row.isTrial = false
        return row
    }

    private static func consumable(_ source: EvidenceSource, on start: Double = 3) -> TransactionRow {
        TransactionRow(
            path: "row", source: source, asOf: day(20), transactionID: "c1", originalTransactionID: "c1",
            productID: "coins", purchasedAt: day(start))
    }

    private static func evidence(
        _ rows: [TransactionRow], renews: Bool? = true, created: Instant? = day(1)
    ) -> Evidence {
        let renewal = RenewalRow(
            path: "renewal", asOf: day(20), originalTransactionID: "s1",
            renewal: Renewal(productID: "weekly", willRenew: renews))
        return Evidence(
            environment: .production, asOf: day(20), receiptCreatedAt: created, transactions: rows, renewals: [renewal])
    }

    private static func facts(_ comparison: ChannelComparison) -> [String] {
        comparison.differences.map {
            "\($0.fact.rawValue) \($0.verifyReceipt ?? "-") \($0.serverAPI ?? "-") \($0.explanation?.rawValue ?? "")"
        }
    }

    @Test("The same periods under other transaction ids are no difference, and a price that one channel has is none")
    func equal() {
        var theirs = Self.period(.signedText)
        theirs.price = Price(milliunits: 990, currency: "EUR")
        theirs.appAccountToken = "ABC"
        var ours = Self.period(.latestReceiptInfo)
        ours.appAccountToken = "abc"
        let comparison = ChannelComparison(Self.evidence([ours]), Self.evidence([theirs]))
        #expect(comparison.compared == ["s1"] && comparison.differences == [])
    }

    @Test("A period, a refund and a renewal that one channel lacks are differences, with what each states")
    func different() {
        var refunded = Self.period(.latestReceiptInfo)
        refunded.cancelledAt = Self.day(9)
        let comparison = ChannelComparison(
            Self.evidence([refunded, Self.period(.latestReceiptInfo, 2)], renews: false),
            Self.evidence([Self.period(.signedText)]))
        #expect(
            Self.facts(comparison) == [
                "cancelled_at 1970-01-10T00:00:00.000Z - ",
                "period weekly 1970-01-15T00:00:00.000Z to 1970-01-22T00:00:00.000Z - ", "will_renew false true ",
            ])
        #expect(comparison.differences.map(\.transactionID) == ["latestReceiptInfo1", "latestReceiptInfo2", nil])
    }

    @Test("An upgraded period has no date of cancellation in a signed transaction")
    func upgraded() {
        var (ours, theirs) = (Self.period(.latestReceiptInfo), Self.period(.signedText))
        (ours.isUpgraded, ours.cancelledAt, theirs.isUpgraded) = (true, Self.day(9), true)
        #expect(ChannelComparison(Self.evidence([ours]), Self.evidence([theirs])).differences == [])
    }

    @Test("A consumable that only the Server API has is finished; another purchase is not explained")
    func purchases() {
        let (ours, theirs) = (Self.evidence([]), Self.evidence([Self.consumable(.signedText)]))
        #expect(
            Self.facts(ChannelComparison(ours, theirs, consumables: ["c1"]))
                == ["purchase - coins 1970-01-04T00:00:00.000Z finished_consumable"])
        #expect(
            Self.facts(ChannelComparison(ours, theirs)) == ["purchase - coins 1970-01-04T00:00:00.000Z "])
        #expect(
            Self.facts(ChannelComparison(theirs, ours, consumables: ["c1"]))
                == ["purchase coins 1970-01-04T00:00:00.000Z - "], "verifyReceipt alone has it")
        let restored = Self.evidence([Self.consumable(.latestReceiptInfo, on: 5)])
        #expect(
            Self.facts(ChannelComparison(restored, theirs))
                == ["purchased_at 1970-01-06T00:00:00.000Z 1970-01-04T00:00:00.000Z restored"])
    }

    @Test("A device's receipt does not speak of a refund that came after it; a list that speaks of none differs")
    func refundedPurchase() {
        var refunded = Self.consumable(.signedText)
        refunded.cancelledAt = Self.day(9)
        let theirs = Self.evidence([refunded])
        let device = Self.evidence([Self.consumable(.deviceReceipt)])
        #expect(Self.facts(ChannelComparison(device, theirs)) == [])
        let list = Self.evidence([Self.consumable(.latestReceiptInfo)])
        #expect(
            Self.facts(ChannelComparison(list, theirs)) == ["cancelled_at - 1970-01-10T00:00:00.000Z "])
    }

    @Test("A receipt of iOS 6 is about its newest period only")
    func oldReceipts() {
        let ours = Self.evidence([Self.period(.latestReceiptInfo, 2)], created: nil)
        let theirs = Self.evidence([Self.period(.signedText), Self.period(.signedText, 2)])
        #expect(
            Self.facts(ChannelComparison(ours, theirs))
                == ["period - weekly 1970-01-08T00:00:00.000Z to 1970-01-15T00:00:00.000Z old_receipt"])
    }

    @Test("The date of a grace period that is over is in one channel's data only, and is no difference")
    func grace() {
        func evidence(_ grace: Double?) -> Evidence {
            let row = RenewalRow(
                path: "renewal", asOf: Self.day(20), originalTransactionID: "s1",
                renewal: Renewal(productID: "weekly", willRenew: true, graceExpiresAt: grace.map(Self.day)))
            return Evidence(
                environment: .production, asOf: Self.day(20), receiptCreatedAt: Self.day(1),
                transactions: [Self.period(.signedText)], renewals: [row])
        }
        #expect(ChannelComparison(evidence(19), evidence(nil)).differences == [])
        #expect(
            Self.facts(ChannelComparison(evidence(21), evidence(nil)))
                == ["grace_expires_at 1970-01-22T00:00:00.000Z - "])
    }
}
