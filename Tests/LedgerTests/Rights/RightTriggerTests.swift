import Subscriptions
import Testing

@testable import Ledger

@Suite("Every statement that may change rights notes whose")
struct RightTriggerTests {
    /// What rights rest on, a row of it, which rows are meant, and what is noted about them.
    struct Noted {
        let table: String
        let row: String
        let column: String
        let basis: RightBasis
    }

    private static let long = "'[1990-01-01,1991-01-01)'"
    private static let cases = [
        Noted(
            table: "ownership (customer_id, subscription_id, valid, known)", row: "2, 1, \(long), \(long)",
            column: "customer_id = 2", basis: .customer(2)),
        Noted(
            table: "manual_grant (customer_id, entitlement, valid, known, given_by, reason)",
            row: "2, 'pro', \(long), \(long), 'kim', 'asked'", column: "customer_id = 2", basis: .customer(2)),
        Noted(
            table: "provisional", row: "2, 2, 'monthly', now(), now(), now(), 'Production'",
            column: "customer_id = 2", basis: .customer(2)),
        Noted(
            table: "customer_merge", row: "2, 1, \(long)", column: "customer_id = 2", basis: .customer(2)),
        Noted(
            table: "subscription_span",
            row: "1, \(long), \(long), 'active', NULL, true, 'monthly', '{}', NULL, 1",
            column: "valid = \(long)", basis: .subscription(1)),
    ]

    /// What a statement makes servers read again.
    private func noted(by statement: String, in test: TestLedger) async throws -> RightChanges.Extent? {
        let before = try await test.ledger.customers.rightChanges(since: nil)
        try await test.run(statement)
        return try await test.ledger.customers.rightChanges(since: before?.look)?.extent
    }

    private func withTwoCustomers(_ body: (TestLedger) async throws -> Void) async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-2)))
            try await test.upload("b", by: "bob")
            try await body(test)
        }
    }

    /// Each row is gone before the next one comes.
    @Test("A row that is inserted, updated or deleted is noted")
    func rows() async throws {
        try await withTwoCustomers { test in
            for noted in Self.cases {
                let name = noted.table.split(separator: " ")[0]
                let column = noted.column.split(separator: " ")[0]
                for statement in [
                    "INSERT INTO ledger.\(noted.table) VALUES (\(noted.row))",
                    "UPDATE ledger.\(name) SET \(column) = \(column) WHERE \(noted.column)",
                    "DELETE FROM ledger.\(name) WHERE \(noted.column)",
                ] {
                    let extent = try await self.noted(by: statement, in: test)
                    #expect(extent == .these([noted.basis]), "\(statement)")
                }
            }
        }
    }

    @Test("A checked subscription is reported with its clocks; one that changes, or has none, is read again")
    func checks() async throws {
        try await withTwoCustomers { test in
            func reported(_ change: String) async throws -> RightChanges? {
                let before = try await test.ledger.customers.rightChanges(since: nil)
                try await test.run("UPDATE ledger.subscription SET \(change)")
                return try await test.ledger.customers.rightChanges(since: before?.look)
            }
            let clocks = "as_of = '2026-01-01 00:00:01Z', checked_at = '2026-01-01 00:00:02.5Z'"
            let check = RightCheck(
                thing: .subscription(1), asOf: Instant(milliseconds: 1_767_225_601_000),
                checkedAt: Instant(milliseconds: 1_767_225_602_500))
            for more in ["", ", next_check_at = now(), periods = 9"] {
                let checked = try await reported(clocks + more)
                #expect(checked?.extent == .these([]) && checked?.checks == [check])
            }
            for change in [clocks + ", expires_at = expires_at + interval '1 day'", "environment = 'Sandbox'"] {
                let changed = try await reported(change)
                #expect(changed?.extent == .these([.subscription(1)]) && changed?.checks == [])
            }
        }
    }

    @Test("A checked one-time purchase is reported with its clocks too")
    func checkedPurchases() async throws {
        try await withTwoCustomers { test in
            try await test.check(
                try await test.upload("p"), purchase("p", at: test.at(-2), asOf: test.at(-1)))
            for (change, isCheck) in [("checked_at = now()", true), ("revoked_at = now()", false)] {
                let before = try await test.ledger.customers.rightChanges(since: nil)
                try await test.run("UPDATE ledger.purchase SET \(change)")
                let reported = try await test.ledger.customers.rightChanges(since: before?.look)
                #expect(reported?.checks.map(\.thing) == (isCheck ? [.purchase(1)] : []))
                #expect(reported?.extent == .these(isCheck ? [] : [.purchase(1)]))
            }
        }
    }

    @Test("Renaming or deleting a customer, and renaming an app, is noted")
    func names() async throws {
        try await withTwoCustomers { test in
            try await test.run("INSERT INTO ledger.customer (app_id, name) VALUES (1, 'carl')")
            let rename = "UPDATE ledger.customer SET name = 'rob' WHERE customer_id = 2"
            #expect(try await noted(by: rename, in: test) == .these([.customer(2)]))
            let delete = "DELETE FROM ledger.customer WHERE name = 'carl' RETURNING customer_id"
            guard case .these(let gone) = try await noted(by: delete, in: test) else {
                Issue.record("the change is not of single customers")
                return
            }
            #expect(gone.count == 1)
            let app = "UPDATE ledger.app SET bundle_id = 'com.example.renamed'"
            #expect(try await noted(by: app, in: test) == .everything)
        }
    }
}
