import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// The tests read, but for a price.
private let settled = OncePerSuite<TestLedger> { lend in
    try await withNewLedger { test in
        try await test.ledger.operations.grantRoles()
        try await lend(test)
    }
}

@Suite("The schema for others explains itself and holds only what is for others", .serialized, settled)
struct CommentTests {
    private static let uncommented = """
        SELECT 'view ' || c.relname AS name FROM pg_class c
        WHERE c.relnamespace = 'perennial'::regnamespace AND obj_description(c.oid, 'pg_class') IS NULL
        UNION ALL
        SELECT format('column %s.%s', c.relname, a.attname) FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relnamespace = 'perennial'::regnamespace AND c.relkind <> 'i'
          AND col_description(c.oid, a.attnum) IS NULL
        UNION ALL
        SELECT 'function ' || p.proname FROM pg_proc p
        WHERE p.pronamespace = 'perennial'::regnamespace AND obj_description(p.oid, 'pg_proc') IS NULL
        ORDER BY 1
        """

    @Test("Every view, column and function has a comment, and one without is found")
    func comments() async throws {
        try await withNewLedger { test in
            #expect(try await test.rows(Self.uncommented) == [])
            try await test.run(
                """
                CREATE VIEW perennial.odd AS SELECT 1 AS number;
                CREATE FUNCTION perennial.strange() RETURNS int LANGUAGE sql AS 'SELECT 1';
                """)
            #expect(try await test.rows(Self.uncommented) == ["column odd.number", "function strange", "view odd"])
        }
    }

    @Test("Each function is named by a report, a document or another one's promise")
    func functions() async throws {
        try await settled.use { test in
            let functions = Set(
                try await test.rows(
                    "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'perennial'::regnamespace"))
            let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().deletingLastPathComponent()
            var texts = ""
            for folder in ["docs", "sql/reports"] {
                let files = FileManager.default.enumerator(atPath: root.appending(path: folder).path)
                for file in (files?.compactMap { $0 as? String } ?? [])
                where file.hasSuffix(".md") || file.hasSuffix(".sql") {
                    texts += try String(contentsOf: root.appending(path: folder).appending(path: file), encoding: .utf8)
                }
            }
            #expect(functions.count > 20)
            #expect(functions.filter { !texts.contains($0) } == [])
        }
    }

    @Test("An owner sets prices and the program by app; the role of reports does not")
    func prices() async throws {
        try await settled.use { test in
            let set = [
                "SELECT perennial.set_price('com.example.app', 'monthly', 'DEU', 4990, 'EUR', '2026-01-01Z')",
                "SELECT perennial.set_small_business('com.example.app', '2026-01-01Z')",
                "SELECT perennial.forget_notifications(now())",
            ]
            for statement in set {
                let error = await #expect(throws: DatabaseError.self, "\(statement)") {
                    try await test.run("SET LOCAL ROLE perennial_report; \(statement)")
                }
                #expect(error?.sqlState == "42501")
                try await test.run("SET LOCAL ROLE perennial_owner; \(statement)")
            }
            try await test.expectRows(
                """
                SELECT storefront, price_milliunits, valid_from = '2026-01-01Z', known_until IS NULL
                FROM perennial.price_history WHERE storefront <> ''
                """, [["DEU", 4_990, true, true]])
            try await test.expectRows(
                "SELECT valid_until = 'infinity' FROM perennial.small_business_history", [[true]])
            let unknown = await #expect(throws: DatabaseError.self) {
                try await test.run("SELECT perennial.set_small_business('com.example.typo', now())")
            }
            #expect(unknown?.message.contains("There is no app com.example.typo") == true)
        }
    }
}
