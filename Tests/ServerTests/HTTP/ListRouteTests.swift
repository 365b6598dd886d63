import Foundation
import HTTPTypes
import HummingbirdTesting
import NIOCore
import Subscriptions
import TestSupport
import Testing
import Tracking

@testable import Server

@Suite("Lists go through everything that an app has, page by page") struct ListRouteTests {
    private static let names = ["Zoe", "kim", "kim2", "émile", "lee"]

    /// A ledger in which each customer has sent a receipt, and an App Store that finds one subscription in each.
    private func serving(_ body: @escaping @Sendable (any TestClientProtocol, ServedLedger) async throws -> Void)
        async throws
    {
        try await ServedLedger.with { served in
            for (number, name) in Self.names.enumerated() {
                let store = Sample.verified(subscription: "10\(number)")
                _ = try await Tracker.quiet(served.ledger, appStore: .answering(store)).submit(
                    Submission(
                        bundleID: ServedLedger.app, customer: name, receipt: Sample.receipt(number)))
            }
            try await Serving.with(Tracker.quiet(served.ledger)) { try await body($0, served) }
        }
    }

    /// Every row of a list in pages of two, by one of its members.
    private func all(
        _ client: any TestClientProtocol, _ list: String, _ member: String, _ query: String = "", secret: String
    ) async throws -> [String] {
        var (found, after): ([String], String?) = ([], nil)
        repeat {
            let cursor = after.map { "&" + address("", ["after": $0]).dropFirst() } ?? ""
            let answer = try await client.send(
                .get, "/v1/apps/com.example.app/\(list)?limit=2\(query)\(cursor)", secret: secret)
            #expect(answer.status == .ok, "\(String(buffer: answer.body))")
            let page = try AnswerBody(answer)
            #expect(page.names == [list, "next"])
            let rows = try #require(page.list(list))
            #expect(rows.count <= 2)
            found += rows.compactMap { $0[member] as? String }
            after = page.text("next")
        } while after != nil
        return found
    }

    @Test("Customers come in the order of their bytes, and by the beginning of their names") func customers()
        async throws
    {
        try await serving { client, served in
            let secret = try await served.key(.read)
            #expect(
                try await all(client, "customers", "customer", secret: secret)
                    == ["Zoe", "kim", "kim2", "lee", "émile"])
            #expect(try await all(client, "customers", "customer", "&prefix=kim", secret: secret) == ["kim", "kim2"])
            #expect(try await all(client, "customers", "customer", "&prefix=%25", secret: secret) == [])
        }
    }

    @Test("A name that no customer can have is refused, not an empty list")
    func impossibleNames() async throws {
        try await serving { client, served in
            let secret = try await served.key(.read)
            let long = String(repeating: "a", count: 256)
            for path in ["receipts?customer=", "receipts?customer=\(long)", "customers/\(long)/orders"] {
                let answer = try await client.send(.get, "/v1/apps/com.example.app/\(path)", secret: secret)
                #expect(answer.status == .badRequest, "\(path)")
            }
            let device = address("", ["device": String(repeating: "é", count: 255)]).dropFirst()
            let products = try await client.send(
                .get, "/v1/apps/com.example.app/products?customer=kim&\(device)", secret: secret)
            #expect(products.status == .ok, "\(String(buffer: products.body))")
        }
    }

    @Test("A merged name says what it means, and an erased customer is left out") func mergedAndErased() async throws {
        try await serving { client, served in
            let decision = try ManualDecision(by: "kim", because: "a test")
            _ = try await served.ledger.customers.merge(
                "kim2", into: "kim", of: ServedLedger.app, deciding: decision)
            _ = try await served.ledger.customers.erase("lee", of: ServedLedger.app, deciding: decision)
            let answer = try await client.send(
                .get, "/v1/apps/com.example.app/customers", secret: served.secret)
            let rows = try #require(try AnswerBody(answer).list("customers"))
            #expect(rows.compactMap { $0["customer"] as? String } == ["Zoe", "kim", "kim2", "émile"])
            #expect(rows.compactMap { $0["merged_into"] as? String } == ["kim"])
        }
    }

    @Test("Subscriptions come with their owners and their states") func subscriptions() async throws {
        try await serving { client, served in
            let ids = try await all(
                client, "subscriptions", "original_transaction_id", secret: served.secret)
            #expect(ids == ["100", "101", "102", "103", "104"])
            #expect(try await all(client, "subscriptions", "customer", secret: served.secret) == Self.names)
            let production = try await all(
                client, "subscriptions", "state", "&environment=Production", secret: served.secret)
            #expect(production == Array(repeating: "active", count: 5))
            #expect(
                try await all(client, "subscriptions", "state", "&environment=Sandbox", secret: served.secret) == [])
            for (query, count) in [
                ("&state=active", 5), ("&state=expired", 0), ("&product_id=monthly", 5), ("&product_id=yearly", 0),
                ("&state=active&product_id=monthly&environment=Production", 5),
            ] {
                let found = try await all(client, "subscriptions", "customer", query, secret: served.secret)
                #expect(found.count == count, "\(query)")
            }
        }
    }

    @Test("Receipts come newest first, and by customer") func receipts() async throws {
        try await serving { client, served in
            let ids = try await all(client, "receipts", "receipt_id", secret: served.secret).compactMap { Int($0) }
            #expect(ids.count == 5 && ids == ids.sorted(by: >))
            let of = try await all(client, "receipts", "receipt_id", "&customer=kim2", secret: served.secret)
            #expect(of == [String(ids[2])])
            #expect(try await all(client, "receipts", "receipt_id", "&customer=stranger", secret: served.secret) == [])
        }
    }

    @Test("A list is refused to other keys, and for a query that means nothing")
    func refused() async throws {
        try await ServedLedger.with { served in
            let other = try await served.key(.read, for: "com.example.other")
            try await Serving.with(Tracker.quiet(served.ledger)) { client in
                for list in ["customers", "subscriptions", "receipts"] {
                    let path = "/v1/apps/com.example.app/\(list)"
                    try expectProblem(try await client.send(.get, path), "unauthenticated", status: 401)
                    try expectProblem(try await client.send(.get, path, secret: other), "forbidden", status: 403)
                    for query in ["limit=0", "limit=x", "order=asc"] {
                        try expectProblem(
                            try await client.send(.get, path + "?" + query, secret: served.secret), "invalid",
                            status: 400)
                    }
                    let none = "/v1/apps/com.example.none/\(list)"
                    try expectProblem(
                        try await client.send(.get, none, secret: served.secret), "unknown-app", status: 404)
                }
                for query in [
                    "subscriptions?after=100", "subscriptions?after=Moon.1", "subscriptions?state=paused",
                    "receipts?after=x",
                    "customers?prefix=%00",
                ] {
                    try expectProblem(
                        try await client.send(.get, "/v1/apps/com.example.app/" + query, secret: served.secret),
                        "invalid", status: 400)
                }
            }
        }
    }
}
