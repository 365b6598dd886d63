import AppStore
import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("What Apple states and this version does not read is counted, with an example") struct UnreadClaimsTests {
    private func counted(_ app: SignedApp) async throws -> [String] {
        try await app.served.ledger.intake.unreadClaims().map {
            "\($0.name) \($0.texts)\($0.isUnreadable ? " unreadable" : "")"
        }.sorted()
    }

    @Test("A notification with new claims is counted by name, and its example verifies")
    func notification() async throws {
        try await SignedApp.with { app in
            let period = app.transaction("1", from: 24, signedOn: 24, ["brandNew": 1, "price": -4])
            try await app.post(app.notification("DID_RENEW", transaction: period, signedOn: 24))
            let expected = ["transaction.brandNew 1", "transaction.price 1 unreadable"]
            #expect(try await counted(app) == expected)
            let ledger = app.served.ledger
            let example = try #require(
                try await ledger.intake.unreadExample(of: "transaction.brandNew", app: ServedLedger.app))
            let text = try await app.tracker.signedTexts.verify(Array(example.utf8))
            #expect(text.claims.contains { $0.path == "brandNew" && $0.value == "1" })
            await #expect(throws: LedgerError.self) {
                try await ledger.intake.unreadExample(of: "transaction.other", app: ServedLedger.app)
            }
            // The subtype is new, so that all that was seen since is counted too.
            try await app.post(app.notification("NEWS", "MORE", transaction: period, signedOn: 25))
            #expect(
                try await counted(app) == [
                    "notification.notificationType=NEWS 1", "notification.subtype=MORE 1", "transaction.brandNew 2",
                    "transaction.price 2 unreadable",
                ])
            let status = try await ledger.operations.status()
            #expect(status.unreadClaims.count == 4 && status.unreadClaims[0].name == "transaction.brandNew")
            // The other app was stated nothing.
            let gauges = try await ledger.operations.gauges().filter { $0.metric == .unreadClaims }
            #expect(gauges.map(\.value) == [4, 0])
        }
    }

    @Test("An unknown ownership gives access by its dates")
    func access() async throws {
        try await SignedApp.with { app in
            let period = app.transaction("1", from: 24, signedOn: 24, ["inAppOwnershipType": "BORROWED"])
            try await app.post(app.notification("SUBSCRIBED", transaction: period, signedOn: 24))
            #expect(try await counted(app) == ["transaction.inAppOwnershipType=BORROWED 1"])
        }
    }

    @Test("A text with the account token of an erased customer is no example")
    func erased() async throws {
        try await SignedApp.with { app in
            let intake = app.served.ledger.intake
            let token = "0b0f7ad4-5b0a-4a83-9a0e-3d6c1f2a9e11"
            _ = try await app.served.database.write(
                Statement(
                    name: "erase_token",
                    sql:
                        "INSERT INTO ledger.erased_token (app_id, digest) VALUES ($1::int, sha256(convert_to($2::text, 'UTF8')))"
                ),
                [.int4(app.app.id), .text(token)])
            func example(of name: String, token: String?) async throws -> String? {
                let claim = SeenClaim(
                    name: name, isUnreadable: false, example: "e", subject: "1", accountToken: token)
                try await intake.countUnread([claim], of: app.app.id)
                let rows = try await app.served.database.query(
                    Statement(name: "example", sql: "SELECT example FROM ledger.unread_claim WHERE name = $1::text"),
                    [.text(name)])
                return try #require(rows.first).textIfPresent("example")
            }
            #expect(try await example(of: "transaction.a", token: token) == nil)
            #expect(try await example(of: "transaction.a", token: "other") == "e", "a later text serves")
            #expect(try await example(of: "transaction.b", token: nil) == "e")
        }
    }

    @Test("Names are bounded, and forgotten once nothing states them")
    func bounded() async throws {
        try await SignedApp.with { app in
            let intake = app.served.ledger.intake
            let many = (0..<300).map {
                SeenClaim(
                    name: "transaction.c\($0)", isUnreadable: false, example: nil, subject: nil, accountToken: nil)
            }
            try await intake.countUnread(Array(many.prefix(150)), of: app.app.id)
            try await intake.countUnread(many, of: app.app.id)
            let kept = try await intake.unreadClaims()
            #expect(kept.count == Int(LedgerIntake.unreadClaimsMax))
            #expect(kept.count { $0.texts == 2 } == 150)
            _ = try await app.served.database.write(
                Statement(
                    name: "age_claims",
                    sql: "UPDATE ledger.unread_claim SET last_seen_at = now() - interval '31 days' WHERE texts = 2"))
            try await intake.forgetUnreadClaims()
            #expect(try await intake.unreadClaims().count == Int(LedgerIntake.unreadClaimsMax) - 150)
        }
    }

    @Test("A process counts a new name at once, and what it knows once a minute")
    func tally() {
        let tally = UnreadTally()
        let start = ContinuousClock.now
        func claim(_ name: String) -> SeenClaim {
            SeenClaim(name: name, isUnreadable: false, example: "e", subject: nil, accountToken: nil)
        }
        #expect(tally.add([claim("a")], of: 1, at: start)[1]?.map(\.texts) == [1])
        #expect(tally.add([claim("a"), claim("a")], of: 1, at: start + .seconds(59)).isEmpty)
        #expect(tally.add([], of: 1, at: start + .seconds(70)).isEmpty)
        #expect(tally.add([claim("a")], of: 1, at: start + .seconds(60))[1]?.map(\.texts) == [3])
        #expect(tally.add([claim("a")], of: 1, at: start + .seconds(61)).isEmpty)
        let both = tally.add([claim("a")], of: 2, at: start + .seconds(62))
        #expect(both[1]?.map(\.texts) == [1] && both[2]?.map(\.texts) == [1])
    }
}
