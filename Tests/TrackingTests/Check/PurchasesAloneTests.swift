import AppStore
import Foundation
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("A customer who has no subscription is asked about like others")
struct PurchasesAloneTests {
    /// The purchase of coins, as Apple states it at an instant.
    private func coins(_ id: String, at instant: Int64, signedAt: Int64) throws -> String {
        let claims: [String: Any] = [
            "transactionId": id, "originalTransactionId": id, "productId": "coins", "bundleId": ServedLedger.app.text,
            "environment": "Production", "type": "Consumable", "purchaseDate": instant,
            "originalPurchaseDate": instant, "quantity": 1, "inAppOwnershipType": "PURCHASED", "signedDate": signedAt,
        ]
        let payload = try JSONSerialization.data(withJSONObject: claims, options: [.sortedKeys])
        let text = payload.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing(
            "=", with: "")
        return "e30.\(text).c2ln"
    }

    /// What a read of the history gives.
    private func history(_ texts: [String], from: String?, revision: String) -> String {
        let texts = texts.map { "\"\($0)\"" }.joined(separator: ",")
        return """
            {"asked":"1","environment":"Production",\(from.map { "\"from\":\"\($0)\"," } ?? "")"history":[
            {"bundleId":"\(ServedLedger.app)","environment":"Production","hasMore":false,"revision":"\(revision)",
            "signedTransactions":[\(texts)]}]}
            """
    }

    @Test("A new purchase leaves the others as they were, and an answer that holds nothing confirms all of them")
    func news() async throws {
        try await ServerLine.with { line in
            let now = Int64(Date.now.timeIntervalSince1970 * 1_000)
            _ = try await line.pointer("1")
            func check() async throws -> String? {
                try await line.served.run("UPDATE ledger.poll_schedule SET due_at = now(), scheduled_for = now()")
                _ = try await Worker(line.tracker).runOnce(maxSeconds: nil)
                let standing = try await line.rows(
                    "SELECT r.outcome, s.attempts, s.lane FROM ledger.receipt r JOIN ledger.poll_schedule s USING (receipt_id)"
                )
                #expect(standing == ["verified 0 sweep"])
                return line.server.asked.last?.revision
            }
            func clocks() async throws -> Int {
                try await line.rows(
                    """
                    SELECT DISTINCT ledger.as_of(p, s) FROM ledger.purchase p
                    JOIN ledger.poll_schedule s ON s.receipt_id = p.polled_by
                    """
                ).count
            }
            let first = try coins("1", at: now - 9_000_000, signedAt: now - 4_000)
            try line.server.say(history([first], from: nil, revision: "r1"))
            #expect(try await check() == nil)
            let second = try coins("2", at: now - 5_000, signedAt: now - 2_000)
            try line.server.say(history([second], from: "r1", revision: "r2"))
            #expect(try await check() == "r1")
            #expect(try await clocks() == 1, "a new purchase leaves the others as they were")
            let equal = """
                SELECT s.confirmed_at > r.asked_at AS equal
                FROM ledger.poll_schedule s JOIN ledger.receipt r USING (receipt_id)
                """
            for (revision, next, isEqual) in [("r2", "r3", false), ("r3", "r4", true), ("r4", "r5", true)] {
                try line.server.say(history([], from: revision, revision: next))
                #expect(try await check() == revision)
                #expect(try await line.rows(equal) == ["\(isEqual)"], "the first answer without news is another one")
            }
            #expect(try await clocks() == 1)
            #expect(try await line.rows("SELECT count(polled_by) AS n FROM ledger.purchase") == ["2"])
        }
    }
}
