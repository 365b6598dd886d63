import Foundation
import Subscriptions
import Testing

@testable import AppStore

@Suite("A signed date that cannot be read is named and not guessed") struct SignedDateTests {
    /// A kind of product, and whether it is a subscription.
    private static let products = [
        ("Auto-Renewable Subscription", true), ("Non-Renewing Subscription", false), ("Consumable", false),
        (nil, true), (nil, false), ("News", true), ("News", false),
    ]
    /// Values that are no instants.
    private static let badForms: [any Sendable] = [
        "soon", -1, 1_000_000_000_000_000_000, 1e300, true, "2026-01-01", [1], ["at": 1],
    ]
    /// The claims that a row needs where it states them.
    private static let dates = ["purchaseDate", "expiresDate", "revocationDate"]

    private static let start: Int64 = 1_780_000_000_000
    private static let day: Int64 = 86_400_000

    /// What is known after some answers: the facts of each subscription and purchase.
    private struct Known: Equatable {
        var subscriptions: [OriginalTransactionID: SubscriptionState] = [:]
        var purchases: [PurchaseKey: PurchaseState] = [:]

        mutating func learn(_ evidence: Evidence?) {
            guard let evidence else { return }
            for id in evidence.subscriptions {
                subscriptions[id] =
                    reconcile(
                        subscriptions[id], with: evidence.slice(of: id), policy: .standard(for: .production)
                    ).state
            }
            for purchase in evidence.purchases {
                if let state = reconcilePurchase(purchases[purchase.key], with: purchase)?.state {
                    purchases[purchase.key] = state
                }
            }
        }
    }

    /// The place of a text in what Apple says.
    private enum Place: CaseIterable {
        case history, statuses, both, notification
    }

    private static func transaction(_ type: String?, _ isSubscription: Bool, signedOn day: Int64) -> [String: Any] {
        var claims: [String: Any] = [
            "transactionId": "7", "originalTransactionId": "7", "productId": "p", "bundleId": "com.example.app",
            "environment": "Production", "purchaseDate": start, "originalPurchaseDate": start,
            "signedDate": start + day * Self.day, "inAppOwnershipType": "PURCHASED", "price": 4_990,
            "currency": "EUR",
        ]
        claims["type"] = type
        if isSubscription { claims["expiresDate"] = start + 30 * Self.day }
        return claims
    }

    private static func compact(_ claims: [String: Any]) throws -> String {
        let payload = try JSONSerialization.data(withJSONObject: claims, options: .sortedKeys)
        return "e30.\(Base64URL.encoded(Array(payload))).c2ln"
    }

    private static func evidence(of claims: [String: Any], _ place: Place) throws -> Evidence? {
        let text = try compact(claims)
        let renewal: [String: Any] = [
            "originalTransactionId": "7", "productId": "p", "autoRenewProductId": "p", "autoRenewStatus": 1,
            "signedDate": claims["signedDate"] ?? 0, "environment": "Production",
        ]
        if place == .notification {
            let payload = try JSONSerialization.data(withJSONObject: claims, options: .sortedKeys)
            let outer: [String: Any] = [
                "notificationType": "SUBSCRIBED", "notificationUUID": "u", "signedDate": claims["signedDate"] ?? 0,
                "data": ["bundleId": "com.example.app", "environment": "Production", "status": 1] as [String: Any],
            ]
            let said = SignedNotification(
                payload: Array(try JSONSerialization.data(withJSONObject: outer)), transaction: Array(payload),
                renewal: nil)
            return Evidence(in: try #require(said), environment: .production)
        }
        let row: [String: Any] = [
            "originalTransactionId": "7", "status": 1, "signedTransactionInfo": text,
            "signedRenewalInfo": try compact(renewal),
        ]
        var all: [String: Any] = ["asked": "7", "environment": "Production"]
        all["statuses"] = ["data": place == .history ? [] : [["lastTransactions": [row]]]]
        all["history"] = [
            [
                "revision": "r", "hasMore": false, "signedTransactions": place == .statuses ? [] : [text],
            ] as [String: Any]
        ]
        let json = try JSONSerialization.data(withJSONObject: all, options: .sortedKeys)
        let contents = try #require(ServerContents(reading: Array(json)))
        return Evidence(in: contents, bundleID: "com.example.app", claimedAt: Instant(milliseconds: start))
    }

    @Test(
        "Whatever date cannot be read, the row is ignored: it gives nothing, takes nothing back, and a later text counts alone",
        arguments: Place.allCases)
    private func ignored(_ place: Place) throws {
        for (type, isSubscription) in Self.products {
            for claim in Self.dates {
                for form in Self.badForms {
                    let context: Comment = "\(type ?? "no type") \(isSubscription) \(claim) \(form)"
                    func text(on day: Int64, isBad: Bool = false) -> [String: Any] {
                        var claims = Self.transaction(type, isSubscription, signedOn: day)
                        if isBad { claims[claim] = form }
                        return claims
                    }
                    let bad = try Self.evidence(of: text(on: 2, isBad: true), place)
                    #expect(bad?.transactions ?? [] == [], context)
                    #expect(bad?.isComplete != true, context)
                    var (known, alone) = (Known(), Known())
                    known.learn(bad)
                    #expect(known == Known(), context)
                    let good = try Self.evidence(of: text(on: 3), place)
                    known.learn(good)
                    alone.learn(good)
                    #expect(known == alone && known != Known(), context)
                    let before = known
                    known.learn(try Self.evidence(of: text(on: 4, isBad: true), place))
                    #expect(known == before, context)
                }
            }
        }
    }

    @Test("A row of a subscription without any expiry is ignored, and one of no known kind is a purchase")
    func missing() throws {
        for place in Place.allCases {
            for nothing in [nil, NSNull(), ""] as [Any?] {
                var claims = Self.transaction("Auto-Renewable Subscription", false, signedOn: 1)
                claims["expiresDate"] = nothing
                let found = try Self.evidence(of: claims, place)
                #expect(found?.transactions ?? [] == [] && found?.isComplete != true)
                claims["type"] = "Non-Consumable"
                #expect(try Self.evidence(of: claims, place)?.purchases.count == 1)
                claims["type"] = "News"
                #expect(try Self.evidence(of: claims, place)?.purchases.count == 1)
            }
        }
        let period = try Self.evidence(of: Self.transaction("Non-Renewing Subscription", true, signedOn: 1), .history)
        #expect(period?.subscriptions == ["7"] && period?.purchases.isEmpty == true, "an end that Apple states counts")
    }

    @Test("Dates that decide nothing are named, and the row counts", arguments: ["originalPurchaseDate"])
    func others(_ claim: String) throws {
        for form in Self.badForms {
            var claims = Self.transaction("Auto-Renewable Subscription", true, signedOn: 1)
            claims[claim] = form
            #expect(try Self.evidence(of: claims, .both)?.subscriptions == ["7"])
            let payload = try JSONSerialization.data(withJSONObject: claims)
            #expect(UnreadClaim.all(in: .transaction, payload: Array(payload)).map(\.name) == ["transaction.\(claim)"])
        }
    }

    @Test("The path of what is ignored is known, and what it lacks is named")
    func named() throws {
        var claims = Self.transaction("Auto-Renewable Subscription", false, signedOn: 1)
        func names(_ claims: [String: Any]) throws -> [String] {
            let payload = try JSONSerialization.data(withJSONObject: claims, options: .sortedKeys)
            return UnreadClaim.all(in: .transaction, payload: Array(payload)).map {
                $0.name + ($0.isUnreadable ? "!" : "")
            }
        }
        #expect(try names(claims) == ["transaction.expiresDate!"])
        claims["expiresDate"] = "soon"
        #expect(try names(claims) == ["transaction.expiresDate!"])
        let json = try JSONSerialization.data(withJSONObject: [
            "asked": "7", "environment": "Production",
            "history": [
                [
                    "revision": "r", "hasMore": false,
                    "signedTransactions": [
                        try Self.compact(Self.transaction(nil, true, signedOn: 1)), try Self.compact(claims),
                    ],
                ] as [String: Any]
            ],
        ])
        let contents = try #require(ServerContents(reading: Array(json)))
        #expect(contents.unreadableTexts == ["history[0].signedTransactions[1]"])
        let evidence = Evidence(in: contents, bundleID: "com.example.app", claimedAt: Instant(milliseconds: 0))
        #expect(evidence?.transactions.count == 1 && evidence?.isComplete == false)
    }
}
