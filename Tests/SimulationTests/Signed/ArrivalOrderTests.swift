import Foundation
import SeededRandom
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("What Apple's answers and its notifications bring is the same, whatever comes first and however far answers lag")
struct ArrivalOrderTests {
    /// One kind of notification: what answers show before and after, and what it states.
    private struct Story: Sendable {
        let name: String
        let kind: String
        var subkind: String?
        /// What its transaction states of a week that began on day 28, and what answers that show it add.
        var isRefunded = false
        var days = 7.0
        var renews = true
        var next: String?
        var isPurchase = false

        func transaction(_ app: SignedApp, signedOn day: Double, changed: Bool = true) -> [String: Any] {
            var claims = app.transaction("1", from: 28, days: changed ? days : 7, signedOn: day)
            if isPurchase {
                claims = ArrivalOrderTests.coins(app, signedOn: day)
            }
            if changed, isRefunded { claims["revocationDate"] = app.at(28.1) }
            return claims
        }

        func notification(_ app: SignedApp) throws -> String {
            var more: [String: Any] = [:]
            if let next { more["autoRenewProductId"] = next }
            return try app.notification(
                kind, subkind, status: isPurchase ? nil : 1, transaction: transaction(app, signedOn: 28.11),
                renewal: isPurchase ? nil : app.renewal(ends: 28 + days, signedOn: 28.11, renews: renews, more),
                signedOn: 28.11)
        }

        func answer(_ app: SignedApp, on day: Double, changed: Bool) async throws {
            try await app.answer(
                on: day, [transaction(app, signedOn: day, changed: changed)], renews: changed ? renews : true,
                to: changed ? next : nil)
        }
    }

    private static let stories = [
        Story(name: "turned off", kind: "DID_CHANGE_RENEWAL_STATUS", subkind: "AUTO_RENEW_DISABLED", renews: false),
        Story(name: "another product", kind: "DID_CHANGE_RENEWAL_PREF", subkind: "UPGRADE", next: "plus"),
        Story(name: "extended", kind: "RENEWAL_EXTENDED", days: 12),
        Story(name: "refunded", kind: "REFUND", isRefunded: true),
        Story(name: "a refunded purchase", kind: "REFUND", isRefunded: true, isPurchase: true),
    ]

    /// Coins that were bought on day 20 for 9.90.
    private static func coins(_ app: SignedApp, signedOn day: Double) -> [String: Any] {
        var claims = app.transaction(
            "c1", from: 20, signedOn: day,
            [
                "originalTransactionId": "c1", "productId": "coins", "type": "Consumable",
                "originalPurchaseDate": app.at(20), "price": 9_900,
            ])
        for key in ["expiresDate", "webOrderLineItemId", "subscriptionGroupIdentifier"] { claims[key] = nil }
        return claims
    }

    @Test(
        "Before or after the first upload, every kind is asked about until an answer shows it",
        arguments: stories.indices, [true, false])
    func waiting(story number: Int, isFirst: Bool) async throws {
        let story = Self.stories[number]
        for lag in [0, 2] {
            try await SignedApp.with { app in
                if isFirst {
                    #expect(try await app.post(story.notification(app)) == "unpolled")
                } else {
                    try await story.answer(app, on: 28.01, changed: false)
                    #expect(try await app.post(story.notification(app)) == "asked")
                }
                for answer in 0..<lag {
                    try await story.answer(app, on: 28.12 + 0.01 * Double(answer), changed: false)
                    #expect(try await app.effects() == ["asked"], "\(story.name)")
                    let left = "SELECT follow_ups::text AS line FROM ledger.poll_schedule ORDER BY receipt_id"
                    #expect(try await app.rows(left) == ["\((isFirst ? 4 : 3) - answer)"], "\(story.name)")
                    try await app.expectSound()
                }
                try await story.answer(app, on: 28.2, changed: true)
                #expect(try await app.effects() == ["applied"], "\(story.name)")
                let shown = try await app.rows(
                    """
                    SELECT concat_ws(' ', state, will_renew, renews_to_product_id,
                                     round(extract(epoch FROM expires_at) * 1000)::bigint = \(app.at(28 + story.days)))
                           AS line FROM perennial.subscription_now
                    UNION ALL SELECT CASE WHEN revoked_at IS NULL THEN 'bought' ELSE 'revoked' END
                    FROM perennial.purchase_now
                    """)
                let will = story.renews ? "t \(story.next ?? "weekly")" : "f"
                let expected = story.isPurchase ? "revoked" : "\(story.isRefunded ? "revoked" : "active") \(will) t"
                #expect(shown == [expected], "\(story.name)")
                try await app.expectSound()
            }
        }
    }

    /// A notification of a refund of the coins.
    private struct Refund {
        let signedOn: Double
        let date: Double
        let kind: String?
        let share: Int?

        func text(_ app: SignedApp) throws -> String {
            var claims = ArrivalOrderTests.coins(app, signedOn: signedOn)
            claims["revocationDate"] = app.at(date)
            claims["revocationReason"] = 1
            if let kind { claims["revocationType"] = kind }
            if let share { claims["revocationPercentage"] = share }
            return try app.notification("REFUND", status: nil, transaction: claims, signedOn: signedOn)
        }
    }

    /// What comes of a purchase: answers of verifyReceipt, and before each of them texts.
    private struct Life: Sendable {
        var answers: [(day: Double, refundedAt: Double?)] = [
            (21, nil), (28.1, 28), (28.3, nil), (28.5, nil), (28.7, 28.6),
        ]
        var arrivals: [(refund: Refund, place: Int)] = []
        /// After which answers what is due is acknowledged.
        var acknowledged: [Bool] = []
        /// The share of the price that went back in the end.
        var share = 100_000

        private static let kinds: [(String?, Int?, counts: Int?)] = [
            ("REFUND_PRORATED", 50_000, 50_000), ("REFUND_PRORATED", 30_000, 30_000), ("REFUND_FULL", nil, 100_000),
            (nil, 20_000, 20_000), ("REFUND_NEW", 40_000, nil), (nil, nil, nil),
        ]

        init(using random: inout Seeded) {
            // The refund of day 28 may be gone in two answers, and another one come.
            if Bool.random(using: &random) { answers.removeLast(3) }
            let stands = answers.last?.refundedAt ?? 0
            answers.append((28.9, stands))
            for number in 1...Int.random(in: 1...4, using: &random) {
                let (kind, share, counts) = Self.kinds.randomElement(using: &random) ?? (nil, nil, nil)
                let date = Bool.random(using: &random) ? 28.0 : 28.6
                let refund = Refund(signedOn: date + 0.01 * Double(number), date: date, kind: kind, share: share)
                arrivals.append((refund, Int.random(in: 0..<answers.count, using: &random)))
                if let counts, date == stands { self.share = counts }
            }
            acknowledged = answers.map { _ in Bool.random(using: &random) }
        }
    }

    /// Sells coins; each purchase gives a hundred units.
    private static func sellCoins(_ app: SignedApp) async throws {
        var coins = CatalogProduct(id: "coins", kind: .consumable, entitlements: [])
        coins.credit = CatalogProduct.Credit(name: "gold", units: 100)
        coins.deliversSince = Instant(milliseconds: app.start)
        try await app.served.ledger.apps.applyCatalog([coins], to: ServedLedger.app)
        while try await app.served.ledger.deliveries.release() {}
    }

    /// Acknowledges what is due; returns whether anything was.
    private static func acknowledge(_ app: SignedApp) async throws -> Bool {
        let deliveries = app.served.ledger.deliveries
        try await deliveries.place()
        let due = try await deliveries.read(of: ServedLedger.app, state: .due, after: 0, limit: 10)
        _ = try await deliveries.acknowledge(due.deliveries.map(\.id), of: ServedLedger.app)
        return !due.deliveries.isEmpty
    }

    @Test(
        "verifyReceipt shows a refund and texts its share: money is the newest share of its date, and all units go back",
        arguments: 0..<12 as Range<UInt64>)
    func shares(seed: UInt64) async throws {
        var random = Seeded(seed: 44_100 + seed)
        print(random)
        let life = Life(using: &random)
        try await SignedApp.with { app in
            try await Self.sellCoins(app)
            for (place, answer) in life.answers.enumerated() {
                for arrival in life.arrivals where arrival.place == place {
                    try await app.post(arrival.refund.text(app))
                }
                var claims = Self.coins(app, signedOn: answer.day)
                if let date = answer.refundedAt {
                    claims["revocationDate"] = app.at(date)
                    claims["revocationReason"] = 1
                }
                try await app.answer(on: answer.day, [claims])
                if life.acknowledged[place] { _ = try await Self.acknowledge(app) }
                try await app.expectSound()
            }
            while try await Self.acknowledge(app) {}
            let money = try await app.rows(
                "SELECT concat_ws(' ', kind, amount_milliunits) AS line FROM perennial.revenue_event ORDER BY kind")
            #expect(money == ["charge 9900", "refund \(-9_900 * life.share / 100_000)"], "\(life)")
            let turns = try await app.rows(
                "SELECT concat_ws(' ', turn % 2, units) AS line FROM ledger.delivery ORDER BY turn")
            #expect(turns.enumerated().allSatisfy { $1 == "\(($0 + 1) % 2) 100" } && turns.count >= 2, "\(turns)")
            try await app.expectSound()
        }
    }
}
