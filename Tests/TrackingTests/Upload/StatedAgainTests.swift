import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("What an import says again of price and storefront is taken once")
struct StatedAgainTests {
    private static let stated = """
        SELECT w.storefront, w.price_milliunits, w.currency FROM ledger.stated_price w ORDER BY w.stated_id
        """
    private static let uploaded = """
        SELECT u.storefront, u.price_milliunits, u.currency, u.imported, u.settled,
               u.uploaded_at < now() - interval '1 hour' AS is_old
        FROM ledger.upload u
        """

    private func upload(
        _ storefront: String?, _ price: (Int64, String)?, imported: Bool = true, in test: TestLedger
    ) -> Upload {
        Upload(
            appID: test.app.id, customer: "ann", receipt: Array("r".utf8), imported: imported, storefront: storefront,
            priceMilliunits: price?.0, currency: price?.1)
    }

    private func store(_ uploads: Upload..., in test: TestLedger) async throws {
        _ = try await test.ledger.intake.store(uploads)
    }

    @Test func `a missing or another price is kept, and neither the upload nor its schedule moves`() async throws {
        try await withLedger { test in
            try await store(upload(nil, nil, in: test), in: test)
            try await test.check(
                try #require(try await test.ledger.intake.store([upload(nil, nil, in: test)]).first).receiptID,
                Answer(from: test.at(-9), asOf: test.at(-1)))
            try await test.run("UPDATE ledger.upload SET uploaded_at = uploaded_at - interval '1 day'")
            let schedule = try await test.rows("SELECT s::text AS row FROM ledger.poll_schedule s")
            #expect(schedule.count == 1)
            try await store(upload(nil, (4_990, "USD"), in: test), in: test)
            try await test.expectRows(Self.uploaded, [[nil, 4_990, "USD", true, true, true]])
            try await store(upload("DEU", nil, in: test), in: test)
            try await store(upload("DEU", (3_990, "EUR"), in: test), in: test)
            try await test.expectRows(Self.uploaded, [["DEU", 3_990, "EUR", true, true, true]])
            try await test.expectRows(
                Self.stated, [[nil, 4_990, "USD"], ["DEU", 4_990, "USD"], ["DEU", 3_990, "EUR"]])
            #expect(try await test.rows("SELECT s::text AS row FROM ledger.poll_schedule s") == schedule)
            #expect(
                try await test.text(
                    "SELECT count(*) FROM ledger.stated_price WHERE stated_at < now() - interval '1 hour'") == "0")
            let charge = "SELECT amount_milliunits, price_basis FROM perennial.charges_as_known('infinity')"
            try await test.expectRows(charge, [[3_990, "stated"]])
        }
    }

    @Test func `an old file never replaces what a device said since`() async throws {
        try await withLedger { test in
            try await store(upload("USA", (4_990, "USD"), in: test), in: test)
            try await store(upload("DEU", (3_990, "EUR"), imported: false, in: test), in: test)
            try await store(upload("USA", (4_990, "USD"), in: test), in: test)
            try await store(upload("USA", nil, in: test), upload(nil, (4_990, "USD"), in: test), in: test)
            try await test.expectRows(Self.uploaded, [["DEU", 3_990, "EUR", false, false, false]])
            try await test.expectRows(Self.stated, [["USA", 4_990, "USD"], ["DEU", 3_990, "EUR"]])
        }
    }

    @Test func `of several lines about one upload, each one that says something counts`() async throws {
        try await withLedger { test in
            try await store(
                upload(nil, (4_990, "USD"), in: test), upload("USA", nil, in: test), upload(nil, nil, in: test),
                in: test)
            try await test.expectRows(Self.stated, [["USA", 4_990, "USD"]])
        }
    }
}
