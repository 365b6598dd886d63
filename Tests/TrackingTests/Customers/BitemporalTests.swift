import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("Timelines keep what held at each time, and what was known of it when")
struct BitemporalTests {
    private static let nothing: [Cell] = [false, nil, nil, nil, nil, "none"]

    @Test("A lookup of the past answers what was known then")
    func knownThen() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let before = try await test.betweenChanges()
            try await test.check(receipt, Answer(from: test.at(-20), asOf: test.at(-19)))
            let started = try await test.betweenChanges()
            let refund = Answer(from: test.at(-20), asOf: test.at(-1)).but { $0.refunded = (0, test.at(-10)) }
            try await test.check(receipt, refund)
            let active: [Cell] = [true, "monthly", "active", nil, "Production", "verified"]
            let revoked: [Cell] = [false, "monthly", "revoked", "refund", "Production", "verified"]
            let table: [(valid: Double, known: Instant?, said: [Cell])] = [
                (0, nil, revoked), (-5, nil, revoked), (-15, nil, active), (-5, started, active), (0, started, active),
                (-5, before, Self.nothing), (-25, nil, Self.nothing),
            ]
            for line in table {
                #expect(
                    try await test.entitled(at: test.at(line.valid), knownAt: line.known) == line.said,
                    "valid \(line.valid) known \(String(describing: line.known))")
            }
            try await test.expectRows(
                "SELECT granted, until, ended_at = $1::timestamptz FROM perennial.entitlement_now",
                with: [.instant(test.at(-10))], [[false, nil, true]])
        }
    }

    @Test("No statement can write two rows that hold of one thing at one time in one knowledge")
    func contradictions() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-20), asOf: test.at(-1)))
            try await test.check(try await test.upload("p"), purchase("p", at: test.at(-20), asOf: test.at(-1)))
            try await test.ledger.apps.applyCatalog(
                [CatalogProduct(id: "monthly", entitlements: ["pro"])], to: test.app.bundleID)
            try await ManualGrantTests.give(30, of: "pro", to: "ann", in: test)
            try await test.upload("b", by: "anon")
            _ = try await test.ledger.customers.merge(
                "anon", into: "ann", of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "logged in"))
            let again = "tstzrange(now() - interval '1 s', now() + interval '1 day')"
            for (table, range, columns) in [
                ("subscription_span", "valid", "subscription_id, known, state, reason, entitled, product_id, version"),
                ("ownership", "valid", "subscription_id, purchase_id, customer_id, known, cause"),
                ("manual_grant", "valid", "customer_id, entitlement, known, given_by, reason"),
                ("catalog_grant", "valid", "app_id, product_id, entitlement, known"),
                ("customer_merge", "applies", "customer_id, into_id"),
            ] {
                #expect(try await test.text("SELECT count(*) > 0 FROM ledger.\(table)") == "true", "\(table) is empty")
                let error = await #expect(throws: DatabaseError.self, "\(table) takes it") {
                    try await test.run(
                        """
                        INSERT INTO ledger.\(table) (\(range), \(columns))
                        SELECT \(again), \(columns) FROM ledger.\(table) WHERE \(range) && \(again)
                        """)
                }
                #expect(error?.sqlState == "23P01", "\(table): \(String(describing: error))")
            }
        }
    }

    @Test("A refund of a purchase that was reversed is still known of when it was known")
    func reversedRefund() async throws {
        try await withLedger { test in
            try await test.sell()
            let receipt = try await test.upload("a")
            try await test.check(receipt, purchase("p", at: test.at(-20), asOf: test.at(-19)))
            let bought = try await test.ledger.now()
            try await test.check(
                receipt, purchase("p", at: test.at(-20), asOf: test.at(-5), refundedAt: test.at(-10)))
            let refunded = try await test.ledger.now()
            for asked in [-1, -0.9] {
                try await test.check(receipt, purchase("p", at: test.at(-20), asOf: test.at(asked)))
            }
            let active: [Cell] = [true, "coins", "active", nil, "Production", "verified"]
            let revoked: [Cell] = [false, "coins", "revoked", "refund", "Production", "verified"]
            let table: [(valid: Double, known: Instant?, said: [Cell])] = [
                (0, nil, active), (-5, nil, active), (-5, refunded, revoked), (-15, refunded, active),
                (-5, bought, active), (-5, test.now, Self.nothing),
            ]
            for line in table {
                #expect(
                    try await test.entitled("coins", at: test.at(line.valid), knownAt: line.known) == line.said,
                    "valid \(line.valid) known \(String(describing: line.known))")
            }
        }
    }

    @Test("A closed row never changes again")
    func closedRows() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let answer = Answer(from: test.at(-70), asOf: test.at(-60))
            try await test.check(receipt, answer)
            var closed: [String] = []
            for (periods, asked, refunded) in [(2, -30.0, false), (3, -8.0, false), (3, -2.0, true), (3, -1.0, false)] {
                // What an answer takes back counts on the second one.
                for asked in [asked, asked + 0.1] {
                    try await test.check(
                        receipt,
                        answer.but {
                            ($0.periods, $0.asOf) = (periods, test.at(asked))
                            if refunded { $0.refunded = (2, test.at(-4)) }
                        })
                }
                let rows = try await test.rows(
                    "SELECT p::text AS row FROM ledger.subscription_span p WHERE NOT upper_inf(p.known) ORDER BY 1")
                #expect(Set(closed).isSubset(of: rows))
                #expect(rows.count > closed.count)
                closed = rows
                try await test.expectSound()
            }
        }
    }

    @Test("An equal answer closes nothing and opens nothing")
    func equalAnswers() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, Answer(from: test.at(-20), asOf: test.at(-19)))
            let before = try await test.rows("SELECT p::text AS row FROM ledger.subscription_span p ORDER BY 1")
            try await test.check(receipt, Answer(from: test.at(-20), asOf: test.at(-9)))
            #expect(try await test.rows("SELECT p::text AS row FROM ledger.subscription_span p ORDER BY 1") == before)
            try await test.expectRows(
                "SELECT count(*), max(last_as_of) = $1::timestamptz AS ends FROM ledger.observation",
                with: [.instant(test.at(-9))], [[1, true]])
            #expect(try await test.text("SELECT version FROM ledger.subscription") == "2")
        }
    }

    @Test("A lookup of an unknown customer has exactly one row")
    func unknownCustomer() async throws {
        try await withLedger { test in
            let unknown = try await test.entitled("monthly", "unknown-customer")
            #expect(unknown == Self.nothing)
            try await test.expectRows(
                "SELECT granted, basis FROM perennial.entitled_at('no.app', 'x', 'y', now())", [[false, "none"]])
            let listed = try await test.ledger.customers.entitlements(
                app: "com.example.app", customer: "unknown-customer")
            #expect(listed.isEmpty)
            #expect(try await test.text("SELECT count(*) FROM ledger.customer") == "0")
        }
    }

    @Test("An instant that is not given is now")
    func noInstant() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-20), asOf: test.at(-1)))
            #expect(
                try await test.rows(
                    "SELECT granted FROM perennial.entitled_at('com.example.app', 'ann', 'monthly', now(), NULL)") == [
                        "true"
                    ])
            #expect(
                try await test.rows(
                    "SELECT granted FROM perennial.entitled_at('com.example.app', 'ann', 'monthly', NULL)")
                    == ["true"])
        }
    }

    @Test("Production wins over the sandbox, the latest end among several sources, and an end only where granted")
    func sources() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let sandbox = Answer(from: test.at(-3), asOf: test.at(-1)).but {
                ($0.environment, $0.subscription) = (.sandbox, "9")
            }
            try await test.check(receipt, sandbox)
            #expect(try await test.entitled() == [true, "monthly", "active", nil, "Sandbox", "verified"])
            let early = Answer(from: test.at(-25), asOf: test.at(-1))
            try await test.check(
                receipt, together([early, early.but { ($0.from, $0.subscription) = (test.at(-10), "2000") }]))
            try await test.expectRows(
                """
                SELECT environment, granted, round(extract(epoch FROM until - $1::timestamptz) / 86400) AS days, ended_at
                FROM perennial.entitlement_now
                """, with: [.instant(test.now)], [["Production", true, 20, nil]])
            let ended = Answer(from: test.at(-80), asOf: test.at(-1)).but {
                ($0.subscription, $0.product, $0.willRenew) = ("3000", "other", false)
            }
            let live = sandbox.but { ($0.subscription, $0.product) = ("4000", "other") }
            try await test.check(receipt, ended)
            try await test.check(try await test.upload("tester's"), live)
            #expect(
                try await test.entitled("other") == [true, "other", "active", nil, "Sandbox", "verified"],
                "An ended subscription hides a live one.")
            try await test.check(
                receipt, early.but { ($0.from, $0.asOf, $0.refunded) = (test.at(-25), test.at(0), (0, test.at(-1))) })
            #expect(try await test.entitled() == [true, "monthly", "active", nil, "Production", "verified"])
        }
    }
}
