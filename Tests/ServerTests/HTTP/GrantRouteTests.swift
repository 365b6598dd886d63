import Foundation
import HTTPTypes
import HummingbirdTesting
import Logging
import NIOCore
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Server
@testable import Tracking

@Suite("Manual grants work over HTTP, and every route works with the privileges of its database role")
struct GrantRouteTests {
    private static let grants = "/v1/apps/com.example.app/customers/kim/grants"
    private static let revoking = grants + "?entitlement=pro&actor=lee&reason=a%20mistake"

    /// A migrated ledger with an app and the roles, and a connection string to it.
    private func withLedger(
        _ body: @escaping @Sendable (SubscriptionLedger, String) async throws -> Void
    ) async throws {
        try await withMigratedDatabase { database, connectionString in
            let ledger = SubscriptionLedger(database: database, seal: try SecretSeal(masterKey: Self.masterKey))
            try await ledger.operations.grantRoles()
            try await ledger.apps.add("com.example.app", secret: "shared secret", callsPerSecond: 0)
            try await body(ledger, connectionString)
        }
    }

    private static let masterKey = [UInt8](repeating: 7, count: 32)

    /// The same ledger on connections that act as a role.
    private func acting(
        as role: String, _ connectionString: String, _ body: (SubscriptionLedger) async throws -> Void
    ) async throws {
        let database = Database(
            DatabaseConfiguration(connectionString: connectionString + " options='-c role=\(role)'")
        ) { _ in }
        do {
            try await body(SubscriptionLedger(database: database, seal: try SecretSeal(masterKey: Self.masterKey)))
            await database.close()
        } catch {
            await database.close()
            throw error
        }
    }

    private func grant(until: String? = nil) -> String {
        let end = until.map { #","until":"\#($0)""# } ?? ""
        return #"{"entitlement":"pro","actor":"kim","reason":"an outage","force":true\#(end)}"#
    }

    private struct Right: Equatable {
        let granted: Bool
        let basis: String?
    }

    /// What is granted has no end in the past; what is not granted says when it ended.
    private func expectEnds(_ right: [String: Any]) {
        #expect((right["granted"] as? Bool == true) == (right["ended_at"] is NSNull), "\(right)")
        if right["granted"] as? Bool == false { #expect(right["until"] is NSNull && right["ended_at"] is String) }
    }

    private func rights(_ client: any TestClientProtocol, _ secret: String) async throws -> [Right] {
        let body = try AnswerBody(await client.send(.get, Serving.entitlements, secret: secret))
        return try #require(body.list("entitlements")).map { right in
            expectEnds(right)
            return Right(granted: right["granted"] as? Bool == true, basis: right["basis"] as? String)
        }
    }

    @Test("An entitlement is granted and revoked")
    func givenAndRevoked() async throws {
        try await withLedger { ledger, _ in
            let admin = try await ledger.apps.createKey(scope: .admin, for: nil).secret
            try await Serving.with(Tracker.quiet(ledger)) { client in
                let end = try await ledger.now() + .days(30)
                let given = try await client.send(
                    .post, Self.grants, secret: admin, body: grant(until: end.iso8601))
                #expect(given.status == .created, "\(String(buffer: given.body))")
                let said = String(buffer: given.body)
                #expect(said.contains(#""until":"\#(end.iso8601)""#) && said.contains(#""reason":"an outage""#))
                #expect(try await rights(client, admin) == [Right(granted: true, basis: "by_hand")])
                let revoked = try await client.send(.delete, Self.revoking, secret: admin)
                #expect(revoked.status == .ok && String(buffer: revoked.body).contains(#""ended_by":"lee""#))
                #expect(try await rights(client, admin) == [Right(granted: false, basis: "by_hand")])
                try expectProblem(
                    try await client.send(.delete, Self.revoking, secret: admin), "not-found", status: 404)
            }
            let log = try await ledger.customers.export("kim", of: "com.example.app")
            #expect(log.grants.map(\.endReason) == ["a mistake"])
        }
    }

    @Test("A grant with an Idempotency-Key is given once")
    func givenOnce() async throws {
        try await withLedger { ledger, _ in
            let admin = try await ledger.apps.createKey(scope: .admin, for: nil).secret
            let name = try #require(HTTPField.Name("Idempotency-Key"))
            try await Serving.with(Tracker.quiet(ledger)) { client in
                func give(_ key: String, _ body: String) async throws -> TestResponse {
                    try await client.send(.post, Self.grants, secret: admin, body: body, headers: [name: key])
                }
                let first = try await give("k1", grant())
                #expect(first.status == .created, "\(String(buffer: first.body))")
                #expect(try await client.send(.delete, Self.revoking, secret: admin).status == .ok)
                let again = try await give("k1", grant())
                #expect(again.status == .ok && again.body == first.body, "\(String(buffer: again.body))")
                #expect(try await rights(client, admin) == [Right(granted: false, basis: "by_hand")])
                let other = #"{"entitlement":"pro","actor":"kim","reason":"another","force":true}"#
                try expectProblem(try await give("k1", other), "conflict", status: 409)
                try expectProblem(try await give("", other), "invalid", status: 400)
                try expectProblem(
                    try await give(String(repeating: "k", count: 256), other), "invalid", status: 400)
                #expect(try await give("k2", other).status == .created)
                try await ledger.database.transaction {
                    try $0.script("UPDATE ledger.grant_request SET asked_at = now() - interval '25 hours'")
                }
                #expect(try await give("k1", other).status == .created)
                let erasing = try ManualDecision(by: "kim", because: "asked for it")
                _ = try await ledger.customers.erase("kim", of: "com.example.app", deciding: erasing)
                let left = try await ledger.database.query(
                    .init(name: "left", sql: "SELECT count(*) AS n FROM ledger.grant_request"))
                #expect(try left.map { try $0.int8("n") } == [0])
            }
        }
    }

    private static let catalog = [
        CatalogProduct(id: "com.example.pro.monthly", entitlements: ["pro", "archive"]),
        CatalogProduct(id: "com.example.tips", entitlements: []),
    ]

    @Test("An entitlement that no product grants is refused as misspelt, unless it is forced")
    func misspelt() async throws {
        try await withLedger { ledger, _ in
            let admin = try await ledger.apps.createKey(scope: .admin, for: nil).secret
            try await ledger.apps.applyCatalog(Self.catalog, to: "com.example.app")
            try await Serving.with(Tracker.quiet(ledger)) { client in
                func give(_ name: String, _ more: String = "") async throws -> TestResponse {
                    let body = #"{"entitlement":"\#(name)","actor":"kim","reason":"x"\#(more)}"#
                    return try await client.send(.post, Self.grants, secret: admin, body: body)
                }
                let near = try await give("prro")
                try expectProblem(near, "invalid", status: 400)
                #expect(
                    try AnswerBody(near).text("detail")?.contains("the nearest name is pro. Send \"force\": true")
                        == true)
                try expectProblem(try await give("prro", #","force":false"#), "invalid", status: 400)
                try expectProblem(try await give("something else"), "invalid", status: 400)
                for (name, more) in [
                    ("pro", ""), ("archive", ""), ("com.example.tips", ""), ("prro", #","force":true"#),
                ] {
                    #expect(try await give(name, more).status == .created, "\(name)")
                }
            }
        }
    }

    @Test("A product that no catalog names is known once a customer has it")
    func ownProduct() async throws {
        try await withLedger { ledger, _ in
            let admin = try await ledger.apps.createKey(scope: .admin, for: nil).secret
            try await Serving.with(Tracker.quiet(ledger, appStore: .answering(Self.answer()))) { client in
                let body = #"{"entitlement":"monthly","actor":"kim","reason":"x"}"#
                try expectProblem(
                    try await client.send(.post, Self.grants, secret: admin, body: body), "invalid", status: 400)
                let kept = try await client.send(
                    .post, Serving.receipts, secret: admin, body: Sample.upload(Sample.receipt()))
                #expect(kept.status == .ok, "\(String(buffer: kept.body))")
                #expect(try await client.send(.post, Self.grants, secret: admin, body: body).status == .created)
            }
        }
    }

    @Test("A bad grant is refused")
    func refused() async throws {
        try await withLedger { ledger, _ in
            let admin = try await ledger.apps.createKey(scope: .admin, for: nil).secret
            let write = try await ledger.apps.createKey(scope: .write, for: nil).secret
            try await Serving.with(Tracker.quiet(ledger)) { client in
                try expectProblem(
                    try await client.send(.post, Self.grants, secret: write, body: grant()), "forbidden", status: 403)
                try expectProblem(
                    try await client.send(.delete, Self.revoking, secret: write), "forbidden", status: 403)
                try expectProblem(
                    try await client.send(.post, Self.grants, body: grant()), "unauthenticated", status: 401)
                try expectProblem(
                    try await client.send(.get, Self.grants, secret: admin), "method-not-allowed", status: 405)
                let bad = [
                    "", "[]", "{}", #"{"entitlement":"","actor":"kim","reason":"x"}"#,
                    #"{"entitlement":"pro","actor":"kim"}"#, #"{"entitlement":"pro","actor":"","reason":"x"}"#,
                    #"{"entitlement":"pro","actor":"kim\u0000","reason":"x"}"#,
                    #"{"entitlement":"pro","actor":"kim","reason":" "}"#,
                    #"{"entitlement":"pro","actor":"\u00a0\n","reason":"x"}"#,
                    grant(until: "tomorrow"), grant(until: "2001-01-01T00:00:00Z"),
                    #"{"entitlement":"\#(String(repeating: "e", count: 10_000))","actor":"kim","reason":"x"}"#,
                ]
                for body in bad {
                    try expectProblem(
                        try await client.send(.post, Self.grants, secret: admin, body: body), "invalid", status: 400)
                }
                for query in [
                    "", "?entitlement=pro", "?entitlement=pro&actor=kim", "?entitlement=pro&actor=kim&reason=",
                    "?entitlement=pro&actor=%20&reason=x",
                ] {
                    try expectProblem(
                        try await client.send(.delete, Self.grants + query, secret: admin), "invalid", status: 400)
                }
                let path = "/v1/apps/com.example.nothing/customers/kim/grants"
                try expectProblem(
                    try await client.send(.post, path, secret: admin, body: grant()), "unknown-app", status: 404)
                let long = "/v1/apps/com.example.app/customers/\(String(repeating: "k", count: 256))/grants"
                try expectProblem(
                    try await client.send(.post, long, secret: admin, body: grant()), "invalid", status: 400)
            }
            #expect(try await ledger.customers.receipts().isEmpty)
        }
    }

    /// What Apple says of one subscription that runs for another day.
    private static func answer() -> String {
        let now = Int64(Date.now.timeIntervalSince1970) * 1000
        return """
            {"status":0,"environment":"Production",
             "receipt":{"bundle_id":"com.example.app","request_date_ms":"\(now)","in_app":[]},
             "latest_receipt_info":[{"product_id":"monthly","quantity":"1","transaction_id":"100",
              "original_transaction_id":"100","web_order_line_item_id":"1","purchase_date_ms":"\(now - 86_400_000)",
              "original_purchase_date_ms":"\(now - 86_400_000)","expires_date_ms":"\(now + 86_400_000)",
              "is_trial_period":"false","is_in_intro_offer_period":"false"}],
             "pending_renewal_info":[{"original_transaction_id":"100","product_id":"monthly",
              "auto_renew_product_id":"monthly","auto_renew_status":"1"}]}
            """
    }

    @Test("Server and worker need no more than their roles")
    func serverAndWorkerWithTheirRolesAlone() async throws {
        try await withLedger { ledger, connectionString in
            let admin = try await ledger.apps.createKey(scope: .admin, for: nil).secret
            let receipt = Data([0x30, 0x82, 0x01, 0x00] + [UInt8](repeating: 0x2A, count: 256)).base64EncodedString()
            try await acting(as: "perennial_api", connectionString) { own in
                try await Serving.with(Tracker.quiet(own)) { client in
                    let upload = #"{"customer":"kim","receipt":"\#(receipt)","price":"4.99","currency":"USD"}"#
                    let kept = try await client.send(.post, Serving.receipts, secret: admin, body: upload)
                    #expect(kept.status == .accepted, "\(String(buffer: kept.body))")
                    let given = try await client.send(.post, Self.grants, secret: admin, body: grant())
                    #expect(given.status == .created, "\(String(buffer: given.body))")
                    #expect(try await client.send(.delete, Self.revoking, secret: admin).status == .ok)
                    #expect(try await rights(client, admin) == [Right(granted: false, basis: "by_hand")])
                    #expect(try await client.send(.get, "/readyz").status == .ok)
                }
                let merging = try ManualDecision(by: "kim", because: "signed in")
                _ = try await own.customers.merge("kim", into: "lee", of: "com.example.app", deciding: merging)
                _ = try await own.operations.status()
            }
            try await hasten(connectionString)
            try await acting(as: "perennial_worker", connectionString) { own in
                let tracker = Tracker.quiet(own, appStore: .answering(Self.answer()))
                let report = try await Worker(tracker).runOnce(maxSeconds: 60)
                #expect(report.asked == 1 && report.left == 0, "\(report.why)")
            }
            try await acting(as: "perennial_api", connectionString) { own in
                let rights = try await own.customers.entitlements(app: "com.example.app", customer: "kim")
                #expect(rights.filter(\.granted).map(\.name) == ["monthly"])
            }
        }
    }

    /// Makes everything due.
    private func hasten(_ connectionString: String) async throws {
        let database = Database(DatabaseConfiguration(connectionString: connectionString)) { _ in }
        try await database.transaction {
            try $0.script("UPDATE ledger.poll_schedule SET due_at = now(), scheduled_for = now(), leased_by = NULL")
        }
        await database.close()
    }
}
