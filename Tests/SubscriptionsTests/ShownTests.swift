import Testing

@testable import Subscriptions

@Suite("The answer that shows what a notification states is recognised, for each type of notification")
struct ShownTests {
    /// What is known, what the texts of a notification state, and the answer that shows it.
    struct Notified: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let known: SubscriptionEvidence
        let text: SubscriptionEvidence
        let shown: SubscriptionEvidence
        /// Whether it states nothing that is not known.
        var isKnown = false

        init(
            _ name: String, _ known: SubscriptionEvidence, text: SubscriptionEvidence, shown: SubscriptionEvidence,
            isKnown: Bool = false
        ) {
            (testDescription, self.known, self.text, self.shown, self.isKnown) = (name, known, text, shown, isKnown)
        }
    }

    private static let first = row("1", 0, 30)
    private static let second = row("2", 30, 60)
    private static let yearly = row("2", 6, 371, product: "yearly")
    private static let running = answer(10, [first], renewal())

    /// A row as a text of the Server API states it.
    private static func stated(
        _ row: TransactionRow, share: Int? = nil, reason: String? = nil, termEndsOn end: Double? = nil
    ) -> TransactionRow {
        var row = row
        row.path = "history[0].signedTransactions[0]"
        (row.revocationPercentage, row.cancellationReason) = (share, reason)
        row.sale = end.map {
            Sale(plan: Sale.monthly, payment: Sale.Payment(number: 1, total: 12, termEndsAt: day($0)))
        }
        return row
    }

    private static let refunded = row("1", 0, 30, cancelled: 11)

    static let table = [
        Notified(
            "REFUND, raised from a part to all", answer(12, [stated(refunded, share: 50_000)], renewal()),
            text: answer(13, [stated(refunded, share: 100_000)]),
            shown: answer(13.1, [stated(refunded, share: 100_000)], renewal())),
        Notified(
            "REFUND, of a kind that is not known any more", answer(12, [stated(refunded, reason: "1")], renewal()),
            text: answer(13, [stated(refunded, reason: "9")]),
            shown: answer(13.1, [stated(refunded, reason: "9")], renewal())),
        Notified(
            "REFUND of a part, beside verifyReceipt, which never shows one", answer(12, [refunded], renewal()),
            text: answer(13, [stated(refunded, share: 50_000)]), shown: answer(13.1, [refunded], renewal()),
            isKnown: true),
        Notified(
            "REFUND of another date", answer(12, [refunded], renewal()),
            text: answer(13, [row("1", 0, 30, cancelled: 12.5)]),
            shown: answer(13.1, [row("1", 0, 30, cancelled: 12.5)], renewal())),
        Notified(
            "A term that ends later", answer(10, [stated(first, termEndsOn: 365)], renewal()),
            text: answer(11, [stated(first, termEndsOn: 377)], renewal()),
            shown: answer(11.1, [stated(first, termEndsOn: 377)], renewal())),
        Notified(
            "A term, beside verifyReceipt, which knows none", running,
            text: answer(11, [stated(first, termEndsOn: 377)], renewal()), shown: answer(11.1, [first], renewal()),
            isKnown: true),
        Notified(
            "An end that moved back, at the first answer although it counts with the second one",
            answer(10, [row("1", 0, 37)], renewal()), text: answer(11, [first], renewal()),
            shown: answer(11.1, [first], renewal())),
        Notified(
            "A later end of grace", answer(31, [first], renewal(retry: true, grace: 36)),
            text: answer(32, [first], renewal(retry: true, grace: 46)),
            shown: answer(32.1, [first], renewal(retry: true, grace: 46))),
        Notified(
            "RESUBSCRIBE", answer(40, [first], renewal(false, intent: "1")),
            text: answer(41, [row("2", 41, 71)], renewal()), shown: answer(41.1, [first, row("2", 41, 71)], renewal())),
        Notified(
            "DID_RENEW", answer(29, [first], renewal()), text: answer(29.9, [second], renewal()),
            shown: answer(29.91, [first, second], renewal())),
        Notified(
            "DID_RENEW, BILLING_RECOVERY", answer(31, [first], renewal(intent: "2", retry: true)),
            text: answer(33, [row("2", 33, 63)], renewal()), shown: answer(33.1, [first, row("2", 33, 63)], renewal())),
        Notified(
            "UPGRADE", answer(5, [first], renewal()), text: answer(6, [yearly], renewal(product: "yearly")),
            shown: answer(
                6.1, [row("1", 0, 30, cancelled: 6, upgraded: true), yearly], renewal(product: "yearly"))),
        Notified(
            "DOWNGRADE", running, text: answer(11, [first], renewal(to: "basic")),
            shown: answer(11.1, [first], renewal(to: "basic"))),
        Notified(
            "DID_CHANGE_RENEWAL_PREF, back", answer(10, [first], renewal(to: "basic")),
            text: answer(11, [first], renewal()), shown: answer(11.1, [first], renewal())),
        Notified(
            "AUTO_RENEW_DISABLED", running, text: answer(11, [first], renewal(false, intent: "1")),
            shown: answer(11.1, [first], renewal(false))),
        Notified(
            "AUTO_RENEW_ENABLED", answer(10, [first], renewal(false)), text: answer(11, [first], renewal()),
            shown: answer(11.1, [first], renewal())),
        Notified(
            "DID_FAIL_TO_RENEW", answer(29, [first], renewal()),
            text: answer(30.01, [first], renewal(intent: "2", retry: true)),
            shown: answer(30.02, [first], renewal(intent: "2", retry: true))),
        Notified(
            "DID_FAIL_TO_RENEW, GRACE_PERIOD", answer(29, [first], renewal()),
            text: answer(30.01, [first], renewal(retry: true, grace: 46)),
            shown: answer(30.02, [first], renewal(retry: true, grace: 46))),
        Notified(
            "GRACE_PERIOD_EXPIRED", answer(31, [first], renewal(retry: true, grace: 46)),
            text: answer(46.1, [first], renewal(intent: "2", retry: true)),
            shown: answer(46.2, [first], renewal(intent: "2", retry: true))),
        Notified(
            "EXPIRED, VOLUNTARY", answer(29, [first], renewal(false)),
            text: answer(30.01, [first], renewal(false, intent: "1")),
            shown: answer(30.02, [first], renewal(false, intent: "1"))),
        Notified(
            "EXPIRED, BILLING_RETRY", answer(31, [first], renewal(retry: true)),
            text: answer(90, [first], renewal(false, intent: "2", retry: false)),
            shown: answer(90.1, [first], renewal(false, intent: "2", retry: false))),
        Notified(
            "PRICE_INCREASE, PENDING", running, text: answer(11, [first], renewal(increase: "0")),
            shown: answer(11.1, [first], renewal(consent: "0"))),
        Notified(
            "PRICE_INCREASE, ACCEPTED", answer(10, [first], renewal(consent: "0")),
            text: answer(11, [first], renewal(increase: "1")), shown: answer(11.1, [first], renewal(consent: "1"))),
        Notified(
            "REFUND", running, text: answer(11, [row("1", 0, 30, cancelled: 11)], renewal(false, intent: "1")),
            shown: answer(11.1, [row("1", 0, 30, cancelled: 11)], renewal(false, intent: "1"))),
        Notified(
            "REFUND of what still renews elsewhere", running,
            text: answer(11, [row("1", 0, 30, cancelled: 11)], renewal()),
            shown: answer(11.1, [row("1", 0, 30, cancelled: 11)], renewal(false))),
        Notified(
            "REFUND of an earlier period", answer(31, [first, second], renewal()),
            text: answer(32, [row("1", 0, 30, cancelled: 32)], renewal()),
            shown: answer(32.1, [row("1", 0, 30, cancelled: 32), second], renewal())),
        Notified(
            "REFUND of a replaced period",
            answer(7, [row("1", 0, 30, cancelled: 6, upgraded: true), yearly], renewal(product: "yearly")),
            text: answer(20, [row("1", 0, 30, cancelled: 20, upgraded: true)], renewal(product: "yearly")),
            shown: answer(
                20.1, [row("1", 0, 30, cancelled: 20, upgraded: true), yearly], renewal(product: "yearly"))),
        Notified(
            "REVOKE", answer(10, [row("1", 0, 30, family: true)], renewal()),
            text: answer(11, [row("1", 0, 30, cancelled: 11, family: true)]),
            shown: answer(11.1, [row("1", 0, 30, cancelled: 11, family: true)], renewal())),
        Notified(
            "REFUND_REVERSED, at the first answer although it counts with the second one",
            answer(12, [row("1", 0, 30, cancelled: 11)], renewal()), text: answer(13, [first], renewal()),
            shown: answer(13.1, [first], renewal())),
        Notified(
            "RENEWAL_EXTENDED", running, text: answer(11, [row("1", 0, 37)], renewal()),
            shown: answer(11.1, [row("1", 0, 37)], renewal())),
        Notified(
            "REFUND_DECLINED", running, text: answer(11, [first], renewal()), shown: answer(11.1, [first], renewal()),
            isKnown: true),
        Notified(
            "CONSUMPTION_REQUEST", running, text: answer(11, [first]), shown: answer(11.1, [first], renewal()),
            isKnown: true),
    ]

    @Test("Before it is not shown, then it is", arguments: table)
    func shown(notified: Notified) throws {
        let before = try #require(settle([notified.known]).state)
        #expect(before.shows(notified.text) == notified.isKnown)
        let after = try #require(settle([notified.known, notified.shown]).state)
        #expect(after.shows(notified.text))
    }
}
