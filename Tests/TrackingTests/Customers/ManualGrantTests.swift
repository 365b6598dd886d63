import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("A manual grant stands beside what Apple says, with its author and reason")
struct ManualGrantTests {
    static let nothing: [Cell] = [false, nil, nil, nil, nil, "none"]
    static let given: [Cell] = [true, nil, "active", nil, "Production", "by_hand"]
    static let over: [Cell] = [false, nil, "expired", "other", "Production", "by_hand"]

    @discardableResult
    static func give(
        _ days: Double?, of right: String = "monthly", to customer: String = "ann", by actor: String = "kim",
        in test: TestLedger
    ) async throws -> ManualGrant {
        try await test.ledger.customers.grant(
            right, to: customer, of: test.app.bundleID, until: days.map(test.at),
            deciding: ManualDecision(by: actor, because: "an outage"))
    }

    @discardableResult
    static func revoke(_ right: String = "monthly", from customer: String = "ann", in test: TestLedger) async throws
        -> ManualGrant
    {
        try await test.ledger.customers.revokeGrant(
            of: right, from: customer, of: test.app.bundleID, deciding: ManualDecision(by: "lee", because: "a mistake"))
    }

    @Test("A grant holds from its beginning to its end, and lookups of its past still find it")
    func everywhere() async throws {
        try await withLedger { test in
            let before = try await test.betweenChanges()
            let grant = try await Self.give(10, in: test)
            #expect(grant.givenBy == "kim" && grant.reason == "an outage" && grant.endedBy == nil)
            #expect(try await test.entitled() == Self.given)
            #expect(try await test.entitled(at: test.at(9.9)) == Self.given)
            #expect(try await test.entitled(at: test.at(10)) == Self.over)
            #expect(try await test.entitled(at: before) == Self.nothing)
            #expect(try await test.entitled(knownAt: before) == Self.nothing)
            #expect(try await test.entitled("monthly", "bob") == Self.nothing)
            try await test.expectRows(
                "SELECT customer, entitlement, granted, basis FROM perennial.entitlement_now",
                [["ann", "monthly", true, "by_hand"]])
            let right = try #require(
                try await test.ledger.customers.entitlements(app: test.app.bundleID, customer: "ann").first)
            #expect(right.granted && right.basis == "by_hand" && right.until == test.at(10))
            #expect(right.asOf == nil && right.checkedAt == nil && right.productID == nil)
        }
    }

    @Test("A revoked grant ends at once, and lookups of its past still find it")
    func revoked() async throws {
        try await withLedger { test in
            try await Self.give(nil, in: test)
            #expect(try await test.entitled(at: test.at(40_000)) == Self.given)
            let given = try await test.ledger.now()
            let ended = try await Self.revoke(in: test)
            #expect(ended.endedBy == "lee" && ended.endReason == "a mistake" && ended.until == nil)
            #expect(try await test.entitled() == Self.over)
            #expect(try await test.entitled(at: given) == Self.given)
            #expect(try await test.entitled(at: test.at(5), knownAt: given) == Self.given)
            #expect(try await test.entitled(at: test.at(5)) == Self.over)
            let again = await #expect(throws: LedgerError.self) { try await Self.revoke(in: test) }
            #expect(again?.kind == .notFound)
            try await test.expectRows(
                """
                SELECT given_by, ended_by, known_until IS NULL AS open FROM perennial.manual_grant_log
                ORDER BY known_from
                """, [["kim", nil, false], ["kim", "lee", true]])
        }
    }

    @Test("A new grant of the same entitlement replaces the old one, longer or shorter")
    func again() async throws {
        try await withLedger { test in
            try await Self.give(30, in: test)
            let then = try await test.betweenChanges()
            try await Self.give(5, by: "lee", in: test)
            #expect(try await test.entitled(at: test.at(6)) == Self.over)
            #expect(try await test.entitled(at: test.at(6), knownAt: then) == Self.given)
            try await Self.give(60, in: test)
            #expect(try await test.entitled(at: test.at(59)) == Self.given)
            #expect(try await test.entitled() == Self.given)
        }
    }

    @Test("Of Apple's answer and a grant, the one that grants wins, then the later end; an ended one is ignored")
    func besideApple() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, Answer(from: test.at(-9), asOf: test.at(-1)))
            let verified: [Cell] = [true, "monthly", "active", nil, "Production", "verified"]
            try await Self.give(2, in: test)
            #expect(try await test.entitled() == verified, "Apple's end is later")
            try await Self.give(100, in: test)
            #expect(try await test.entitled() == Self.given)
            try await Self.revoke(in: test)
            #expect(try await test.entitled() == verified)
            try await test.check(
                receipt, Answer(from: test.at(-9), asOf: test.at(0)).but { $0.refunded = (0, test.at(-0.5)) })
            #expect(try await test.entitled() == [false, "monthly", "revoked", "refund", "Production", "verified"])
            try await Self.give(2, in: test)
            #expect(try await test.entitled() == Self.given)
        }
    }

    @Test("An ended grant does not hide a subscription in the sandbox")
    func besideTheSandbox() async throws {
        try await withLedger { test in
            let answer = Answer(from: test.at(-3), asOf: test.at(-1)).but { $0.environment = .sandbox }
            try await test.check(try await test.upload("a"), answer)
            try await Self.give(2, in: test)
            #expect(try await test.entitled() == Self.given)
            try await Self.revoke(in: test)
            #expect(try await test.entitled() == [true, "monthly", "active", nil, "Sandbox", "verified"])
        }
    }

    @Test("Figures of money leave grants out")
    func money() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            func figures() async throws -> [[String]] {
                [
                    try await test.rows("SELECT * FROM perennial.revenue_event ORDER BY 1"),
                    try await test.rows("SELECT * FROM perennial.charges_as_known('infinity') ORDER BY 1"),
                    try await test.rows("SELECT * FROM perennial.timeline ORDER BY valid_from"),
                    try await test.rows("SELECT version, state, entitled FROM perennial.subscription_now"),
                    try await test.rows(
                        "SELECT kind FROM ledger.event WHERE kind <> 'entitlements.changed' ORDER BY event_id"),
                ]
            }
            let before = try await figures()
            try await Self.give(30, in: test)
            try await Self.give(30, of: "pro", in: test)
            #expect(try await figures() == before)
            #expect(!before[0].isEmpty && !before[1].isEmpty)
        }
    }

    @Test("An end in the past, a bad name and a grant that does not exist are refused")
    func refused() async throws {
        try await withLedger { test in
            let past = await #expect(throws: LedgerError.self) { try await Self.give(-1, in: test) }
            #expect(past?.kind == .invalid)
            for bad in ["", String(repeating: "e", count: 256), "a\0b"] {
                let error = await #expect(throws: LedgerError.self) { try await Self.give(1, of: bad, in: test) }
                #expect(error?.kind == .invalid)
            }
            let unknown = await #expect(throws: LedgerError.self) {
                try await Self.revoke(from: "unknown-customer", in: test)
            }
            #expect(unknown?.kind == .notFound)
            // The closure throws by this statement, for the compiler does not look into the expectations.
            let customers = try await test.text("SELECT count(*) FROM ledger.customer")
            #expect(customers == "0")
        }
    }

    @Test(
        "A decision needs a name and a reason, neither empty, too long nor with NUL",
        arguments: [("kim", ""), ("", "x"), ("a\0b", "x"), ("kim", "a\0b"), (String(repeating: "k", count: 256), "x")])
    func decisions(actor: String, reason: String) {
        #expect(throws: LedgerError.self) { try ManualDecision(by: actor, because: reason) }
    }

    @Test("Many grants at once leave one that runs, and no two that overlap")
    func concurrently() async throws {
        try await withLedger(connections: 4) { test in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<12 { group.addTask { try await Self.give(Double(10 + index), in: test) } }
                try await group.waitForAll()
            }
            #expect(
                try await test.text(
                    "SELECT count(*) FROM ledger.manual_grant WHERE upper_inf(known) AND valid @> now()") == "1")
        }
    }
}
