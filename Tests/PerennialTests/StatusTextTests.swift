import Crypto
import Foundation
import JSON
import Postgres
import Server
import Subscriptions
import Testing
import TestSupport
@testable import Tracking

@testable import perennial

@Suite("The status says in text what is wrong and what to do") struct StatusTextTests {
    @Test func `an app that is asked about more slowly is named until it has grown back`() async throws {
        try await withMigratedDatabase { database, _ in
            let ledger = SubscriptionLedger(database: database)
            try await ledger.apps.add("a", callsPerSecond: 60)
            try await ledger.apps.add("b", callsPerSecond: 0)
            func slow(_ ago: String) async throws -> (text: String, json: String) {
                try await database.transaction {
                    try $0.script(
                        "UPDATE ledger.app_budget SET slowed_to = 2.25, slowed_at = now() + interval '\(ago)'")
                }
                let status = try await ledger.operations.status()
                return (status.text(), status.json.rendered())
            }
            let slowed = try await slow("1 minute")
            #expect(slowed.text.contains("Slowed: a to 2.3 calls a second of 60, "), "\(slowed.text)")
            #expect(slowed.text.contains("Slowed: b to 2.3 calls a second of any number, "), "\(slowed.text)")
            #expect(
                slowed.json.contains(#""slowed":[{"bundle_id":"a","calls_per_second":"2.25","rate":60}"#),
                "\(slowed.json)")
            let grown = try await slow("-2 minutes")
            #expect(!grown.text.contains("Slowed") && grown.json.contains(#""slowed":[]"#), "\(grown.text)")
        }
    }

    @Test func `a bundle id that a receipt names forges no line`() async throws {
        try await withMigratedDatabase { database, _ in
            let ledger = SubscriptionLedger(database: database)
            try await ledger.apps.add("a", callsPerSecond: 0)
            try await database.transaction {
                try $0.script(
                    #"""
                    INSERT INTO ledger.refused_bundle (app_id, bundle_id, receipts)
                    SELECT app_id, E'b\nPaused: a\x1b[2J', 1 FROM ledger.app
                    """#)
            }
            let status = try await ledger.operations.status()
            #expect(status.text().contains(#"b\u{a}Paused: a\u{1b}[2J"#), "\(status.text())")
        }
    }

    @Test func `months of a yearly product advise a server key`() async throws {
        try await withMigratedDatabase { database, _ in
            let ledger = SubscriptionLedger(
                database: database, seal: try SecretSeal(masterKey: [UInt8](repeating: 7, count: 32)))
            try await ledger.apps.add("a", callsPerSecond: 60)
            try await database.transaction {
                try $0.script(
                    """
                    INSERT INTO ledger.product (app_id, product_id, period) SELECT app_id, 'year', 'P1Y' FROM ledger.app;
                    INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
                    SELECT app_id, 'Production', unnest('{1,2,3}'::text[]) FROM ledger.app;
                    INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, is_upgraded,
                        is_trial, is_intro, path, recorded_at)
                    SELECT subscription_id, 'year', 1, '2026-06-08Z',
                        CASE original_transaction_id WHEN '3' THEN '2027-06-08Z' ELSE '2026-07-08Z' END::timestamptz,
                        false, original_transaction_id = '2', false, '', now()
                    FROM ledger.subscription
                    """)
            }
            let status = try await ledger.operations.status()
            #expect(status.text().contains("Terms: 1 period of a looks like payments of a yearly term"))
            #expect(status.json.rendered().contains(#""hidden_terms":[{"bundle_id":"a","periods":1}]"#))
            #expect(status.attention == [])
            try await ledger.apps.storeServerKey(
                try ConnectKey(pem: P256.Signing.PrivateKey().pemRepresentation, id: "K", issuer: "I"), of: "a")
            #expect(try await ledger.operations.status().hiddenTerms.isEmpty)
        }
    }

    @Test func `of a secret that is refused the status says what is known, and what to do`() async throws {
        try await withMigratedDatabase { database, _ in
            let ledger = SubscriptionLedger(
                database: database, seal: try SecretSeal(masterKey: [UInt8](repeating: 7, count: 32)))
            try await ledger.apps.add("a", secret: "s", callsPerSecond: 60)
            func lines(_ columns: String) async throws -> (text: String, json: String, attention: [String]) {
                try await database.transaction {
                    try $0.script(
                        """
                        DELETE FROM ledger.secret_trial;
                        INSERT INTO ledger.secret_trial
                            (app_id, environment, refused_at, refused_receipts, is_untold, previous_since)
                        SELECT app_id, 'Production', \(columns) FROM ledger.app
                        """)
                }
                let status = try await ledger.operations.status()
                return (status.text(), status.json.rendered(), status.attention)
            }
            for (isUntold, why) in [
                (false, "and accepted it about none since it was stored. Unless"),
                (true, "and no stored receipt that Apple vouches for has a subscription there, to try it on. Unless"),
            ] {
                let refused = try await lines("now(), '{1,2}', \(isUntold), NULL")
                #expect(
                    refused.text.contains("secret of a (21004) in Production about 2 receipts, \(why)"), "\(refused)")
                #expect(refused.attention == ["Apple refuses the shared secret of a in Production about 2 receipts"])
            }
            let previous = try await lines("NULL, '{}', false, '2026-11-21 12:00:00Z'")
            #expect(previous.text.contains("of a in Production and accepts the previous one, with which checks go on"))
            #expect(
                previous.json.contains(
                    #""previous_secrets":[{"bundle_id":"a","environment":"Production","since":"2026-11-21T12:00:00.000Z"}]"#
                ),
                "\(previous.json)")
            #expect(previous.attention == ["Apple accepts only the previous shared secret of a in Production"])
        }
    }

    @Test func `attention is named, and nothing needs it in an empty or working ledger`() async throws {
        try await withMigratedDatabase { database, _ in
            let ledger = SubscriptionLedger(database: database)
            #expect(try await ledger.operations.status().attention == [])
            try await ledger.apps.add("a", callsPerSecond: 60)
            let app = try await ledger.apps.app("a")
            _ = try await ledger.intake.store([Upload(appID: app.id, customer: "c", receipt: [1], imported: false)])
            #expect(try await ledger.operations.status().attention == [])
            try await database.transaction {
                try $0.script(
                    """
                    UPDATE ledger.poll_schedule SET due_at = now() - interval '1 hour', scheduled_for = now() - interval '1 hour';
                    UPDATE ledger.app_budget SET paused_until = now() + interval '1 hour', paused_because = 'a test'
                    """)
            }
            let status = try await ledger.operations.status()
            #expect(status.attention == ["a is paused", "1 receipt is overdue, and no worker runs"])
            #expect(status.json.rendered().contains(#""attention":["a is paused","1 receipt is overdue"#))
        }
    }

    @Test func `a refund request that waits for ten hours needs attention until it is answered`() async throws {
        try await withMigratedDatabase { database, _ in
            let ledger = SubscriptionLedger(database: database)
            try await ledger.apps.add("a", callsPerSecond: 60)
            let app = try await ledger.apps.app("a")
            func notify(_ id: String, hoursAgo: Int, _ kind: String = "CONSUMPTION_REQUEST") async throws {
                try await database.transaction {
                    try $0.script(
                        """
                        INSERT INTO ledger.notification (app_id, received_at, version, kind, apple_id, environment,
                            original_transaction_id, transaction_id, signed_at, effect, texts)
                        SELECT \(app.id), now(), 2, '\(kind)', gen_random_uuid(), 'Sandbox', '\(id)', '\(id)',
                            now() - interval '\(hoursAgo) hours', 'unpolled', ''
                        """)
                }
            }
            try await notify("early", hoursAgo: 9)
            try await notify("old", hoursAgo: 24 * 8)
            try await notify("other", hoursAgo: 11, "REFUND")
            let known = "Apple is not asked about 3 purchases of a"
            #expect(try await ledger.operations.status().attention == [known])
            try await notify("late", hoursAgo: 11)
            try await notify("late", hoursAgo: 12)
            let status = try await ledger.operations.status()
            #expect(
                status.attention == [
                    "Apple is not asked about 4 purchases of a", "Apple waits for what was used of late of a",
                ])
            #expect(status.text().contains("`perennial support consumption --app a --sandbox --transaction-id late`"))
            #expect(
                status.text().contains(
                    "4 subscriptions and purchases of a are known by notification or transaction only; Apple is not asked"
                ))
            #expect(status.json.rendered().contains(#""late_consumption":[{"asked_at":"#))
            #expect(status.json.rendered().contains(#""has_server_key":false,"subjects":4"#))
            _ = try await ledger.support.withhold(
                WantedSupportCall(kind: .consumption, environment: .sandbox, subject: "late", request: nil), of: app)
            try await database.transaction { try $0.script("UPDATE ledger.notification SET effect = 'applied'") }
            #expect(try await ledger.operations.status().attention == [])
            #expect(try await !ledger.operations.status().text().contains("Notifications:"))
        }
    }

    @Test func `a lane says for how long its first receipt has been waiting`() async throws {
        try await withMigratedDatabase { database, _ in
            let ledger = SubscriptionLedger(database: database)
            try await ledger.apps.add("a", callsPerSecond: 60)
            let app = try await ledger.apps.app("a")
            _ = try await ledger.intake.store([Upload(appID: app.id, customer: "c", receipt: [1], imported: true)])
            try await database.transaction {
                try $0.script("UPDATE ledger.poll_schedule SET scheduled_for = now() - interval '100 s'")
            }
            let status = try await ledger.operations.status()
            #expect(status.text().contains("Imported receipts wait for their first check"), "\(status.text())")
            #expect(status.text().contains("LAG_S") && status.text().contains("  10"), "\(status.text())")
            #expect(status.json.rendered().contains(#""lag_s":10"#), "\(status.json.rendered())")
        }
    }

    @Test func `products without kind share a line for each app, and each has its entry`() async throws {
        try await withMigratedDatabase { database, _ in
            let ledger = SubscriptionLedger(database: database)
            try await ledger.apps.add("a", callsPerSecond: 60)
            try await database.transaction {
                try $0.script(
                    """
                    INSERT INTO ledger.purchase (app_id, environment, original_transaction_id, product_id)
                    SELECT app_id, 'Production', n, 'coins.' || n FROM ledger.app, unnest('{1,2}'::text[]) n
                    """)
            }
            let status = try await ledger.operations.status()
            #expect(status.text().split(separator: "\n").count { $0.hasPrefix("Without kind: ") } == 1)
            #expect(status.attention == ["coins.1, coins.2 of a have no kind"])
            #expect(
                status.productsWithoutKind.count == 2 && status.json.rendered().contains(#""product_id":"coins.2""#))
        }
    }

    @Test func `a restored database says which id its feed had before`() async throws {
        try await withMigratedDatabase { database, _ in
            let ledger = SubscriptionLedger(database: database)
            let before = try await ledger.operations.status()
            #expect(before.text().contains("Feed: position 0, 0 events without a position yet, id \(before.feedID)\n"))
            #expect(before.json.rendered().contains(#""former_id":null"#))
            _ = try await ledger.feed.renew()
            let after = try await ledger.operations.status()
            let since = try #require(after.feedRenewedAt).iso8601
            #expect(after.text().contains("this id since \(since) instead of \(before.feedID), "), "\(after.text())")
            #expect(after.json.rendered().contains(#""former_id":"\#(before.feedID)""#))
        }
    }

    @Test func `what workers found violated is said, with what to do`() async throws {
        try await withMigratedDatabase { database, _ in
            let ledger = SubscriptionLedger(database: database)
            #expect(try await ledger.operations.status().json.rendered().contains(#""invariants":[]"#))
            try await ledger.operations.writeInvariants([.coverage: (2, 2), .feed: (1, 0), .events: (0, 0)])
            let status = try await ledger.operations.status()
            let lines = status.text().split(separator: "\n").filter { $0.hasPrefix("Violated: ") }
            #expect(lines.count == 2, "\(status.text())")
            #expect(lines[0].hasPrefix("Violated: coverage: 2 found at ") && lines[0].hasSuffix("repaired"), "\(lines)")
            #expect(lines[1].hasSuffix("repaired: 0; run `perennial verify`"), "\(lines)")
            let json = status.json.rendered()
            #expect(json.contains(#""check":"feed","checked_at":"#) && json.contains(#""repaired":0,"violations":1}"#))
        }
    }

    @Test func `today so far is a line for each app, marked as incomplete, and tables fit the terminal`() async throws {
        try await ServedLedger.with { served in
            var monthly = CatalogProduct(id: "monthly", kind: .autoRenewable, entitlements: ["pro"])
            (monthly.period, monthly.priceMilliunits, monthly.currency) = ("P1M", 4_990, "EUR")
            try await served.ledger.apps.applyCatalog([monthly], to: ServedLedger.app)
            for number in 0..<2 {
                let answer = Sample.verified(subscription: "\(number)")
                _ = try await Tracker.quiet(served.ledger, appStore: .answering(answer)).submit(
                    Submission(bundleID: ServedLedger.app, customer: "kim", receipt: Sample.receipt(number)))
            }
            let other = try await served.ledger.apps.app("com.example.other")
            _ = try await served.ledger.intake.store([
                Upload(appID: other.id, customer: "c", receipt: [1], imported: false)
            ])
            let early = try await served.ledger.operations.status()
            #expect(early.text().contains("Not all subscriptions are in it"), "\(early.text())")
            _ = try await served.ledger.feed.sequence()
            while try await served.ledger.operations.summarise()?.isBehind == true {}
            let status = try await served.ledger.operations.status()
            let days = status.text().split(separator: "\n").filter { $0.hasPrefix("Today so far (") }
            #expect(days.count == 2 && days.allSatisfy { $0.contains(" UTC, incomplete), com.example.") }, "\(days)")
            #expect(
                days[0].hasSuffix(
                    "com.example.app: 2 with access, 0 in a trial, 2 paying, MRR 9.98 EUR; 0 began to pay, 0 came back, "
                        + "0 stopped; trials: 0 began, 0 paid, 0 lost."), "\(days)")
            #expect(days[1].contains("com.example.other: 0 with access, 0 in a trial, 0 paying, no MRR;"), "\(days)")
            let json = status.json.rendered()
            #expect(json.contains(#""complete":false,"day":""#), "\(json)")
            #expect(json.contains(#""mrr":[{"amount":"9.98","currency":"EUR"}],"paying":2"#), "\(json)")
            for width in [80, 120] {
                let parts = status.text(in: TerminalStyle(width: width, hasColour: false)).components(
                    separatedBy: "\n\n")
                let lines = parts.prefix(2).flatMap { $0.split(separator: "\n") }
                #expect(
                    lines.contains { $0.hasPrefix("BUNDLE_ID") } && lines.allSatisfy { $0.count <= width }, "\(lines)")
            }
        }
    }
}
