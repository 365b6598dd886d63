import AppStoreSimulator
import Crypto
import Foundation
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("A verified notification is a reason to ask, and changes nothing by itself")
struct ReasonsToAskTests {
    /// The schedule of the receipts that are asked about: follow-ups, and the seconds until the next check.
    private func schedule(_ app: SignedApp) async throws -> [String] {
        try await app.rows(
            """
            SELECT concat_ws(' ', follow_ups, round(extract(epoch FROM due_at - now()))) AS line
            FROM ledger.poll_schedule ORDER BY receipt_id
            """)
    }

    /// A year of basic that was bought on a day.
    private func basic(_ app: SignedApp, signedOn: Double, _ more: [String: Any] = [:]) -> [String: Any] {
        app.transaction("1", from: 20, days: 365, signedOn: signedOn, ["productId": "basic"].merging(more) { $1 })
    }

    /// The customer changed to a month of plus.
    private func upgrade(_ app: SignedApp) throws -> String {
        try app.notification(
            "DID_CHANGE_RENEWAL_PREF", "UPGRADE",
            transaction: app.transaction("2", from: 28, days: 30, signedOn: 28.01, ["productId": "plus"]),
            renewal: app.renewal(
                ends: 58, signedOn: 28.01, ["productId": "plus", "autoRenewProductId": "plus"]), signedOn: 28.01)
    }

    @Test(
        "An upgrade to a shorter period is asked about in five seconds, then after 1, 5 and 10 minutes until it shows")
    func followUps() async throws {
        try await SignedApp.with { app in
            try await app.answer(on: 27, [basic(app, signedOn: 27)])
            try await app.served.run("UPDATE ledger.receipt SET asked_at = now() - interval '1 hour'")
            try await app.served.run("UPDATE ledger.poll_schedule SET confirmed_at = now() - interval '1 hour'")
            #expect(try await app.post(upgrade(app)) == "asked")
            #expect(try await schedule(app) == ["4 5"])
            #expect(try await app.standing() == ["active t basic"])
            for (minutes, left) in [(1, 3), (5, 2), (10, 1)] {
                try await app.answer(on: 28.02, [basic(app, signedOn: 27)])
                #expect(try await schedule(app) == ["\(left) \(60 * minutes)"])
                #expect(try await app.effects() == ["asked"])
            }
            try await app.expectSound()
            try await app.answer(on: 28.03, [basic(app, signedOn: 27)])
            #expect(try await schedule(app).first?.hasPrefix("0 ") == true)
            #expect(try await app.effects() == ["unshown"], "no answer showed it")
            let upgraded: [String: Any] = ["isUpgraded": true, "revocationDate": app.at(28)]
            let plus = app.transaction("2", from: 28, days: 30, signedOn: 28.5, ["productId": "plus"])
            try await app.answer(on: 28.5, [basic(app, signedOn: 28.5, upgraded), plus])
            #expect(try await app.standing() == ["active t plus"])
            let last =
                "SELECT product_id || ' ' || state AS line FROM ledger.subscription_span WHERE upper_inf(known) AND upper_inf(valid)"
            #expect(try await app.rows(last) == ["plus expired"], "basic does not live on")
            #expect(try await app.effects() == ["applied"], "its details ride along whenever it shows")
            try await app.expectSound()
        }
    }

    @Test("News end the follow-ups, and equal answers, failed calls and another poller keep them")
    func kept() async throws {
        try await SignedApp.with { app in
            try await app.answer(on: 27, [basic(app, signedOn: 27)])
            let second = Upload(
                appID: app.app.id, customer: "kim", receipt: Array("second".utf8), imported: false)
            let other = try #require(try await app.served.ledger.intake.store([second]).first).receiptID
            try await app.answer(on: 27.1, [basic(app, signedOn: 27)], about: other)
            try await app.post(upgrade(app))
            app.store.say(nil)
            _ = try await app.tracker.check(app.receipt)
            #expect(try await app.rows("SELECT max(follow_ups)::text AS line FROM ledger.poll_schedule") == ["4"])
            // Another receipt takes over.
            try await app.served.run(
                "UPDATE ledger.receipt SET receipt_created_at = now() WHERE receipt_id = \(other)")
            try await app.served.run(
                "UPDATE ledger.receipt SET rejections = 1, rejected_since = now() WHERE receipt_id = \(app.receipt)")
            try await app.answer(on: 27.2, [basic(app, signedOn: 27)], about: other)
            let polled = "SELECT s.follow_ups::text AS line FROM ledger.poll_schedule s WHERE s.receipt_id = "
            #expect(try await app.rows("SELECT polled_by::text AS line FROM ledger.subscription") == ["\(other)"])
            #expect(try await app.rows(polled + "\(other)").first.map { Int($0) ?? 0 > 0 } == true)
            let plus = app.transaction("2", from: 28, days: 30, signedOn: 28.1, ["productId": "plus"])
            let upgraded: [String: Any] = ["isUpgraded": true, "revocationDate": app.at(28)]
            try await app.answer(on: 28.1, [basic(app, signedOn: 28.1, upgraded), plus], about: other)
            #expect(try await app.rows(polled + "\(other)") == ["0"])
            #expect(try await app.effects() == ["applied"])
        }
    }

    @Test("A subscription whose schedule is gone is asked about again")
    func retired() async throws {
        try await SignedApp.with { app in
            let old = app.transaction("1", from: -400, days: 7, signedOn: 20)
            try await app.answer(on: 20, [old], renews: false)
            #expect(try await schedule(app) == [], "it ended more than a year ago")
            let back = try app.notification(
                "SUBSCRIBED", "RESUBSCRIBE", transaction: app.transaction("2", from: 29, days: 7, signedOn: 29),
                renewal: app.renewal(ends: 36, signedOn: 29), signedOn: 29)
            #expect(try await app.post(back) == "asked")
            #expect(try await schedule(app).first?.hasPrefix("4 ") == true)
            try await app.answer(on: 29.1, [old, app.transaction("2", from: 29, days: 7, signedOn: 29.1)])
            #expect(try await app.standing() == ["active t weekly"])
            try await app.expectSound()
        }
    }

    @Test(
        "The price of a text rides along at once, also while no answer shows what it states; the share of a refund waits"
    )
    func priceFirst() async throws {
        try await SignedApp.with { app in
            let week = app.transaction("1", from: 28, signedOn: 28.01)
            try await app.answer(on: 28.1, [week])
            let money = """
                SELECT concat_ws(' ', price_milliunits, price_currency, revocation_percentage) AS line FROM ledger.period
                """
            #expect(try await app.rows(money) == [""])
            try await app.post(
                app.notification(
                    "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", transaction: week,
                    renewal: app.renewal(ends: 35, signedOn: 28.2, renews: false), signedOn: 28.2))
            try await app.answer(on: 28.3, [week])
            #expect(try await app.rows(money) == ["4990 EUR"])
            #expect(try await app.effects() == ["asked"], "the renewal does not show yet")
            try await app.expectSound()
            let refunded = app.transaction(
                "1", from: 28, signedOn: 28.4,
                ["revocationDate": app.at(28.4), "revocationPercentage": 50_000, "price": 5_990])
            try await app.post(app.notification("REFUND", status: 5, transaction: refunded, signedOn: 28.4))
            try await app.answer(on: 28.45, [week])
            #expect(try await app.rows(money) == ["5990 EUR"])
            try await app.expectSound()
            let before = try await app.events()
            for day in [28.5, 28.6, 28.7, 28.8] { try await app.answer(on: day, [week]) }
            #expect(try await app.effects() == ["applied", "unshown"])
            #expect(try await app.rows(money) == ["5990 EUR"])
            #expect(try await app.events() == before, "details make no event")
            try await app.expectSound()
            try await app.answer(on: 28.9, [refunded])
            #expect(try await app.effects() == ["applied", "applied"])
            #expect(try await app.rows(money) == ["5990 EUR 50000"])
            try await app.expectSound()
        }
    }

    @Test("What no receipt polls is known by notification only, and is taken up once the app has a key")
    func unpolled() async throws {
        try await SignedApp.with { app in
            let text = try app.notification(
                "DID_RENEW", transaction: app.transaction("7", from: 28, signedOn: 28.01),
                renewal: app.renewal(ends: 35, signedOn: 28.01), signedOn: 28.01)
            #expect(try await app.post(text) == "unpolled")
            let other = try app.notification(
                "REFUND", transaction: app.transaction("1", from: 20, signedOn: 28.2, ["revocationDate": app.at(28)]),
                signedOn: 28.2)
            #expect(try await app.post(other) == "unpolled")
            let status = try await app.served.ledger.operations.status()
            #expect(status.unasked.map(\.subjects) == [1] && status.unasked.first?.hasServerKey == false)
            #expect(try await app.events() == [])
            try await app.expectSound()
            #expect(try await app.served.ledger.intake.takeUpUnpolled() == false)
            #expect(try await app.effects() == ["unpolled", "unpolled"])
            try await storeKey(app)
            _ = try await app.served.ledger.intake.takeUpUnpolled()
            #expect(try await app.effects() == ["asked", "asked"])
            let asked = try await app.rows(
                """
                SELECT concat_ws(' ', form, transaction_id, follow_ups) AS line
                FROM ledger.receipt JOIN ledger.poll_schedule USING (receipt_id) WHERE form = 'transaction_id' ORDER BY 1
                """)
            #expect(asked == ["transaction_id 1 4", "transaction_id 7 4"])
            // Without the key Apple cannot be asked about them.
            try await app.served.ledger.apps.removeServerKey(of: ServedLedger.app)
            #expect(try await app.served.ledger.intake.giveUpKeyless() == false)
            #expect(try await app.effects() == ["unpolled", "unpolled"])
            #expect(try await app.served.ledger.operations.status().unasked.map(\.subjects) == [1])
            #expect(try await schedule(app).count == 1, "the customer's receipt alone")
            try await app.expectSound()
            try await storeKey(app)
            _ = try await app.served.ledger.intake.takeUpUnpolled()
            #expect(try await app.effects() == ["asked", "asked"])
            #expect(try await schedule(app).count == 3)
        }
    }

    @Test("A subscription that becomes known takes up a stored refund, and is asked about until it shows")
    func becomesKnown() async throws {
        try await SignedApp.with { app in
            let week = app.transaction("1", from: 28, signedOn: 28.01)
            let refunded = app.transaction("1", from: 28, signedOn: 28.2, ["revocationDate": app.at(28.2)])
            let ended = app.renewal(ends: 35, signedOn: 28.2, renews: false, ["expirationIntent": 1])
            let refund = try app.notification(
                "REFUND", status: 5, transaction: refunded, renewal: ended, signedOn: 28.2)
            #expect(try await app.post(refund) == "unpolled")
            // Apple's answer about the first receipt lags behind.
            try await app.answer(on: 28.21, [week])
            #expect(try await app.standing() == ["active t weekly"])
            #expect(try await app.effects() == ["asked"])
            #expect(try await schedule(app) == ["4 60"])
            try await app.expectSound()
            try await app.answer(on: 28.22, [refunded])
            #expect(try await app.standing().first?.hasPrefix("revoked") == true)
            #expect(try await app.effects() == ["applied"])
            #expect(try await schedule(app).first?.hasPrefix("0 ") == true)
            try await app.expectSound()
        }
    }

    private func storeKey(_ app: SignedApp) async throws {
        let key = P256.Signing.PrivateKey().pemRepresentation
        try await app.served.ledger.apps.storeServerKey(
            try ConnectKey(pem: key, id: "K1", issuer: "57246542-96fe-1a63-e053-0824d011072a"), of: ServedLedger.app)
    }

    @Test("With a key it is asked about at once; without one the receipts of the customer whom its token names are")
    func pointed() async throws {
        try await SignedApp.with { app in
            let token = try await app.customer()
            try await app.answer(on: 20, [app.transaction("x", from: 19, signedOn: 20, ["originalTransactionId": "x"])])
            try await app.served.run(
                """
                UPDATE ledger.receipt SET verified_at = now() - interval '1 day', asked_at = now() - interval '1 day';
                UPDATE ledger.poll_schedule SET due_at = now() + interval '1 day', lane = 'sweep'
                """)
            let text = try app.notification(
                "SUBSCRIBED",
                transaction: app.transaction(
                    "1", from: 28, signedOn: 28.01, ["appAccountToken": token.uppercased()]),
                renewal: app.renewal(ends: 35, signedOn: 28.01), signedOn: 28.01)
            #expect(try await app.post(text) == "unpolled")
            let wanted = try await app.rows(
                """
                SELECT c.name AS line FROM ledger.poll_schedule s JOIN ledger.upload u USING (receipt_id)
                JOIN ledger.customer c USING (customer_id) WHERE s.due_at < now() + interval '10 s'
                """)
            #expect(wanted == [token])
        }
    }

    @Test("A receipt that a token names is asked about once a minute at most, also while a check is under way")
    func paced() async throws {
        try await SignedApp.with { app in
            let token = try await app.customer()
            let receipt = try await app.receipt(of: token)
            try await app.answer(
                on: 20, [app.transaction("x", from: 19, signedOn: 20, ["originalTransactionId": "x"])], about: receipt)
            func post(_ id: String) async throws -> String {
                try await app.post(
                    try app.notification(
                        "SUBSCRIBED",
                        transaction: app.transaction(
                            id, from: 28, signedOn: 28.01, ["appAccountToken": token, "originalTransactionId": id]),
                        signedOn: 28.01))
            }
            let next = "SELECT round(extract(epoch FROM %@ - now()))::text AS line FROM ledger.poll_schedule "
            let due = next.replacingOccurrences(of: "%@", with: "due_at") + "WHERE receipt_id = \(receipt)"
            #expect(try await post("1") == "unpolled")
            #expect(try await app.rows(due) == ["60"])
            try await app.served.run("UPDATE ledger.receipt SET asked_at = now() - interval '50 s'")
            try await app.served.run("UPDATE ledger.poll_schedule SET confirmed_at = NULL, confirmed_as_of = NULL")
            #expect(try await post("2") == "unpolled")
            #expect(try await app.rows(due) == ["10"])
            let worker = try await app.served.ledger.claims.startWorker(host: "test", process: 1)
            _ = try await app.served.ledger.claims.claim(receipt, for: worker, leaseSeconds: 60)
            #expect(try await post("3") == "unpolled")
            let wanted = next.replacingOccurrences(of: "%@", with: "want_at") + "WHERE receipt_id = \(receipt)"
            #expect(try await app.rows(wanted) == ["60"])
        }
    }

    @Test("Status 4 without a date of grace is a reason to ask, and the next answer decides alone")
    func notifiedGrace() async throws {
        try await SignedApp.with { app in
            let month = app.transaction("1", from: 0, days: 29, signedOn: 20)
            try await app.answer(on: 20, [month])
            let failed = try app.notification(
                "DID_FAIL_TO_RENEW", "GRACE_PERIOD", status: 4, transaction: month,
                renewal: app.renewal(ends: 29, signedOn: 29.1, ["isInBillingRetryPeriod": true]), signedOn: 29.1)
            #expect(try await app.post(failed) == "asked")
            let events = try await app.events()
            try await app.answer(on: 29.2, [month])
            #expect(try await app.standing() == ["expired unknown f weekly"])
            #expect(try await app.events().dropFirst(events.count) == ["subscription.expired"])
        }
    }

    @Test("Notifications take no turn from checks at an end, and a check that is at hand keeps its lane")
    func flood() async throws {
        try await SignedApp.with { app in
            try await app.answer(on: 27, [basic(app, signedOn: 27)])
            #expect(try await app.post(upgrade(app)) == "asked")
            #expect(try await app.rows("SELECT lane::text AS line FROM ledger.poll_schedule") == ["retry"])
            try await app.answer(on: 27.1, [basic(app, signedOn: 27)])
            #expect(try await app.rows("SELECT lane::text AS line FROM ledger.poll_schedule") == ["retry"])
            try await app.served.run("UPDATE ledger.poll_schedule SET lane = 'expiring', follow_ups = 0")
            let renewed = try app.notification(
                "REFUND", status: 5, transaction: basic(app, signedOn: 28, ["revocationDate": app.at(28)]),
                signedOn: 28)
            #expect(try await app.post(renewed) == "asked")
            #expect(try await app.rows("SELECT lane::text AS line FROM ledger.poll_schedule") == ["expiring"])
        }
    }

    @Test("The answer that shows a refund ends its follow-ups, whatever becomes of the renewal")
    func refunded() async throws {
        try await SignedApp.with { app in
            try await app.answer(on: 28.1, [app.transaction("1", from: 28, signedOn: 28.01)])
            let refunded = app.transaction("1", from: 28, signedOn: 28.2, ["revocationDate": app.at(28.2)])
            let text = try app.notification(
                "REFUND", status: 5, transaction: refunded,
                renewal: app.renewal(ends: 35, signedOn: 28.2, renews: false, ["expirationIntent": 1]), signedOn: 28.2)
            #expect(try await app.post(text) == "asked")
            try await app.answer(on: 28.21, [refunded])
            #expect(try await app.effects() == ["applied"])
            #expect(try await schedule(app).first?.hasPrefix("0 ") == true)
            try await app.expectSound()
        }
    }

    @Test("A refusal uses up no follow-up: the next one comes at their pace, and later the longer Apple refuses")
    func refusedMeanwhile() async throws {
        try await SignedApp.with { app in
            try await app.answer(on: 27, [basic(app, signedOn: 27)])
            #expect(try await app.post(upgrade(app)) == "asked")
            func refuse() async throws {
                app.store.say(#"{"status":21003}"#)
                _ = try await app.tracker.check(app.receipt)
            }
            let rejections = "SELECT rejections::text AS line FROM ledger.receipt"
            try await refuse()
            #expect(try await schedule(app) == ["4 60"])
            #expect(try await app.rows(rejections) == ["1"])
            try await app.served.run("UPDATE ledger.receipt SET rejected_since = now() - interval '180 s'")
            try await refuse()
            #expect(try await schedule(app) == ["4 180"])
            #expect(try await app.rows(rejections) == ["1"], "one a day counts")
            try await app.expectSound()
            try await app.answer(on: 28.02, [basic(app, signedOn: 27)])
            #expect(try await schedule(app) == ["3 60"])
            #expect(try await app.effects() == ["asked"])
        }
    }

    @Test("Questions about what Apple refuses for good end, and are not asked for ever")
    func refused() async throws {
        try await SignedApp.with { app in
            try await app.answer(on: 27, [basic(app, signedOn: 27)])
            #expect(try await app.post(upgrade(app)) == "asked")
            try await app.served.run(
                "UPDATE ledger.receipt SET rejections = 2, rejected_since = now() - interval '4 days', outcome = 'rejected'"
            )
            app.store.say(#"{"status":21003}"#)
            _ = try await app.tracker.check(app.receipt)
            #expect(try await app.rows("SELECT COALESCE(polled_by::text, '') AS line FROM ledger.subscription") == [""])
            #expect(try await app.effects() == ["unshown"])
            try await app.expectSound()
        }
    }

    @Test("The same notification again is nothing new, and one that was stored unverified becomes verified")
    func repeated() async throws {
        try await SignedApp.with { app in
            try await app.answer(on: 27, [basic(app, signedOn: 27)])
            let text = try upgrade(app)
            #expect(try await app.post(text) == "asked")
            #expect(try await app.post(text) == "repeated")
            #expect(try await app.effects().count == 1)
        }
    }

    @Test("A lagging answer after a notified refund undoes nothing that an answer showed")
    func lagging() async throws {
        try await SignedApp.with { app in
            let bought = app.transaction("1", from: 28, signedOn: 28.01)
            try await app.answer(on: 28.1, [bought])
            let refunded = app.transaction("1", from: 28, signedOn: 28.2, ["revocationDate": app.at(28.2)])
            try await app.post(try app.notification("REFUND", status: 5, transaction: refunded, signedOn: 28.2))
            try await app.answer(on: 28.2001, [refunded])
            #expect(try await app.standing() == ["revoked refund f weekly"])
            #expect(try await app.effects() == ["applied"])
            try await app.answer(on: 28.2005, [bought])
            #expect(try await app.standing() == ["revoked refund f weekly"])
            try await app.answer(on: 28.21, [refunded])
            #expect(try await app.events() == ["subscription.started", "ownership.assigned", "refund.granted"])
            try await app.expectSound()
        }
    }
}
