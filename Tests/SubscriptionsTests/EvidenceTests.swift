import Subscriptions
import Testing

@Suite("Evidence of Apple's server and of devices is combined") struct EvidenceTests {
    private func states(_ evidence: Evidence) -> [String] {
        evidence.subscriptions.map { id in
            let found = verdict(of: SubscriptionFacts(evidence.slice(of: id)), at: evidence.asOf, policy: strictPolicy)
            return "\(id) \(found.state.rawValue)" + (found.reason.map { "/\($0.rawValue)" } ?? "")
        }
    }

    private let replaced = row("1", 0, 30, cancelled: 10, upgraded: true)

    @Test("Another subscription that took over ends the replaced one")
    func anotherSubscriptionThatTookOverEndsTheReplacedOne() {
        let table: [(String, TransactionRow, [String])] = [
            ("live", row("2", 10, 40, of: "2000"), ["1000 expired/other", "2000 active"]),
            (
                "refunded since", row("2", 10, 40, cancelled: 15, of: "2000"),
                ["1000 expired/other", "2000 revoked/refund"]
            ),
            (
                "replaced in turn", row("2", 10, 40, cancelled: 15, upgraded: true, of: "2000"),
                ["1000 expired/other", "2000 awaiting_renewal/replacement"]
            ),
            (
                "refunded before the replacement", row("2", 5, 40, cancelled: 8, of: "2000"),
                ["1000 awaiting_renewal/replacement", "2000 revoked/refund"]
            ),
            (
                "older", row("2", -60, -30, of: "2000"), ["1000 awaiting_renewal/replacement", "2000 expired/unknown"]
            ),
        ]
        for (name, other, expected) in table {
            #expect(states(evidence(20, [replaced, other])) == expected, "\(name)")
            #expect(states(evidence(20, [other, replaced])) == expected, "\(name)")
        }
    }

    @Test("Only a row that starts when the upgraded one was replaced takes its place")
    func whatIsBesideAnUpgradedRowDoesNotReplaceIt() {
        let awaited = "1000 awaiting_renewal/replacement"
        let undated = row("1", 0, 30, upgraded: true)
        let table: [(String, TransactionRow, TransactionRow, String)] = [
            ("shared by the family since the fifth day", replaced, row("2", 5, 35, family: true, of: "2000"), awaited),
            ("bought half a second before", replaced, row("2", 9.999995, 40, of: "2000"), "1000 expired/other"),
            ("bought after the replaced one would have ended", replaced, row("2", 30, 60, of: "2000"), awaited),
            (
                "a next period, replaced before it began", row("1", 30, 60, cancelled: 29, upgraded: true),
                row("2", 29, 59, product: "yearly", of: "2000"), "1000 expired/other"
            ),
            ("no date, another product", undated, row("2", 5, 35, product: "yearly", of: "2000"), "1000 expired/other"),
            ("no date, the same product", undated, row("2", 5, 35, of: "2000"), awaited),
            (
                "no date, shared by the family", undated,
                row("2", 5, 35, product: "yearly", family: true, of: "2000"), awaited
            ),
            ("no date, bought later", undated, row("2", 31, 61, product: "yearly", of: "2000"), awaited),
        ]
        for (name, upgraded, other, expected) in table {
            let asOf = upgraded.cancelledAt == day(29) ? 29.5 : 20
            #expect(states(evidence(asOf, [upgraded, other])).first == expected, "\(name)")
        }
        let late = evidence(20, [replaced, row("2", 5, 35, family: true, of: "2000"), row("3", 10, 40, of: "3000")])
        #expect(late.slice(of: subscriptionID).replacedBy == "3000")
    }

    @Test("What replaced an earlier period does not end a later one")
    func whatReplacedAnEarlierPeriodDoesNotEndALaterOne() {
        let rows = [
            row("1", 0, 30, cancelled: 10, upgraded: true), row("2", 12, 40, of: "2000"),
            row("3", 50, 80, cancelled: 60, upgraded: true),
        ]
        #expect(states(evidence(61, rows)) == ["1000 awaiting_renewal/replacement", "2000 expired/unknown"])
    }

    @Test("A period whose expiry the device lacks is no purchase")
    func aPeriodWhoseExpiryTheDeviceLacksIsNoPurchase() {
        let period = row("1", 0, 30)
        var bare = row("1", 0, 30, asOf: 5, cancelled: 4, source: .deviceReceipt)
        bare.expiresAt = nil
        var restored = bare
        restored.transactionID = "restored"
        restored.webOrderLineItemID = nil
        var unknown = restored
        unknown.purchasedAt = day(-30)
        for row in [bare, restored] {
            let evidence = evidence(10, [row, period])
            #expect(evidence.purchases.isEmpty)
            #expect(evidence.slice(of: subscriptionID).transactions.count == 2)
            #expect(SubscriptionFacts(evidence.slice(of: subscriptionID)).periods.count == 1)
        }
        #expect(evidence(10, [period, unknown]).purchases.isEmpty)
        #expect(
            evidence(10, [period, unknown]).slice(of: subscriptionID).transactions == [
                answer(10, [period]).transactions[0]
            ])
        var lifetime = unknown
        lifetime.originalTransactionID = "3000"
        #expect(evidence(10, [period, lifetime]).purchases.map(\.key.originalTransactionID) == ["3000"])
    }

    @Test("Of one instant the server knows better than the device")
    func ofOneInstantTheServerKnowsBetterThanTheDevice() {
        let device = row("1", 0, 37, asOf: 10, cancelled: 4, source: .deviceReceipt)
        let server = row("1", 0, 30)
        for rows in [[device, server], [server, device]] {
            let period = SubscriptionFacts(answer(10, rows)).periods.first
            #expect(period?.cancelledAt == nil)
            #expect(period?.expiresAt == day(30))
        }
        var purchase = device
        purchase.expiresAt = nil
        var refundless = purchase
        refundless.source = .latestReceiptInfo
        refundless.cancelledAt = nil
        for rows in [[purchase, refundless], [refundless, purchase]] {
            let found = evidence(10, rows).purchases.first.flatMap { reconcilePurchase(nil, with: $0) }
            #expect(found?.state.revokedAt == nil)
        }
    }

    @Test("A newer denial clears an offer")
    func aNewerDenialClearsAnOffer() {
        var denied = row("1", 0, 7, trial: false)
        var offered = row("1", 0, 7, trial: true)
        offered.isIntro = true
        denied.isIntro = false
        func flags(_ answers: SubscriptionEvidence...) -> [Flag]? {
            settle(answers).state?.timeline.span(at: day(1))?.flags
        }
        #expect(flags(answer(1, [offered])) == [.intro, .trial])
        #expect(flags(answer(1, [offered]), answer(2, [denied])) == [])
        #expect(flags(answer(2, [denied]), answer(1, [offered])) == [])
        #expect(flags(answer(1, [offered]), answer(2, [row("1", 0, 7)])) == [.intro, .trial], "silence denies nothing")
        #expect(flags(answer(2, [row("1", 0, 7)]), answer(1, [offered])) == [.intro, .trial])
    }

    @Test("A newer row of the server clears an upgrade and a device does not")
    func aNewerRowOfTheServerClearsAnUpgradeAndADeviceDoesNot() {
        let upgraded = answer(10, [row("1", 0, 30, upgraded: true)])
        let device = answer(12, [row("1", 0, 30, asOf: 11, source: .deviceReceipt)])
        #expect(settle([upgraded, device]).state?.facts.periods.first?.isUpgraded == true)
        let cleared = [12, 13].map { answer($0, [row("1", 0, 30)]) }
        #expect(settle([upgraded] + cleared).state?.facts.periods.first?.isUpgraded == false)
    }
}
