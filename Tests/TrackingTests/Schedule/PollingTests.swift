import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("One receipt polls each subscription, and hands over when it is refused")
struct PollingTests {
    private func answer(_ test: TestLedger, made: Double, asOf: Double) -> Answer {
        Answer(from: test.at(-9), asOf: test.at(asOf)).but { $0.createdAt = test.at(made) }
    }

    private func polledBy(_ test: TestLedger) async throws -> String {
        try await test.text("SELECT polled_by FROM ledger.subscription")
    }

    private func scheduled(_ test: TestLedger) async throws -> [String] {
        try await test.rows("SELECT receipt_id FROM ledger.poll_schedule ORDER BY 1")
    }

    @Test("The verified receipt that was made last polls, the others are kept and rest")
    func newest() async throws {
        try await withLedger { test in
            let (old, new, older) = (
                try await test.upload("old"), try await test.upload("new"), try await test.upload("older")
            )
            try await test.check(old, answer(test, made: -8, asOf: -4))
            #expect(try await polledBy(test) == old.description)
            try await test.check(new, answer(test, made: -2, asOf: -3))
            #expect(try await polledBy(test) == new.description)
            try await test.check(older, answer(test, made: -9, asOf: -2))
            #expect(try await polledBy(test) == new.description)
            try await test.check(old, answer(test, made: -8, asOf: -1))
            #expect(try await scheduled(test) == [new.description])
            #expect(try await test.text("SELECT count(*) FROM ledger.receipt") == "3")
        }
    }

    @Test(
        "A rejected polling receipt hands over to the next newest, whatever the last answer about that was",
        arguments: [false, true])
    func handOver(outageBefore: Bool) async throws {
        try await withLedger { test in
            let (old, new) = (try await test.upload("old"), try await test.upload("new"))
            try await test.check(old, answer(test, made: -8, asOf: -4))
            if outageBefore { try await test.check(old, outage) }
            try await test.check(new, answer(test, made: -2, asOf: -3))
            try await test.check(new, rejected())
            #expect(try await polledBy(test) == old.description)
            #expect(
                try await test.text(
                    "SELECT due_at <= now() AS due FROM ledger.poll_schedule WHERE receipt_id = \(old)") == "true")
            #expect(try await test.entitled() == [true, "monthly", "active", nil, "Production", "verified"])
            try await test.check(old, answer(test, made: -8, asOf: -1))
            try await test.check(new, answer(test, made: -2, asOf: -0.5))
            #expect(try await polledBy(test) == new.description)
        }
    }

    @Test("A subscription of one receipt only is polled by it again once Apple vouches for it again")
    func alone() async throws {
        try await withLedger { test in
            let only = try await test.upload("only")
            try await test.check(only, answer(test, made: -8, asOf: -4))
            let refused = try await test.check(only, rejected())
            #expect(refused.nextCheckAt != nil)
            #expect(try await scheduled(test) == [only.description])
            #expect(try await test.entitled() == [true, "monthly", "active", nil, "Production", "verified"])
            try await test.check(only, answer(test, made: -8, asOf: -1))
            #expect(try await polledBy(test) == only.description)
            try await test.expectRows("SELECT rejections, rejected_since FROM ledger.receipt", [[0, nil]])
        }
    }

    @Test("A receipt that was never vouched for leaves the schedule after three refusals; a new upload brings it back")
    func retired() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            for _ in 0..<2 { #expect(try await test.check(receipt, rejected()).nextCheckAt != nil) }
            #expect(try await test.check(receipt, rejected()).nextCheckAt == nil)
            #expect(try await scheduled(test) == [])
            try await test.expectRows("SELECT outcome, rejections FROM ledger.receipt", [["rejected", 3]])
            try await test.upload("a", imported: true)
            #expect(try await scheduled(test) == [])
            try await test.upload("a")
            #expect(try await scheduled(test) == [receipt.description])
            try await test.check(receipt, answer(test, made: -8, asOf: -1))
            #expect(try await test.owner() == "ann")
        }
    }

    @Test("Receipts without purchases are asked three times more, then rest")
    func empty() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let nothing = Finding.verified(
                Evidence(environment: .production, bundleID: "com.example.app", asOf: test.at(-1)))
            for _ in 0..<3 { #expect(try await test.check(receipt, nothing).nextCheckAt != nil) }
            #expect(try await test.check(receipt, nothing).nextCheckAt == nil)
            #expect(try await scheduled(test) == [])
        }
    }

    @Test("A batch that rejects one receipt while another settles its successor never collides")
    func atOnce() async throws {
        try await withNewLedger(connections: 8) { test in
            for round in 0..<10 {
                let (old, new) = (try await test.upload("old\(round)"), try await test.upload("new\(round)"))
                let id = OriginalTransactionID("s\(round)")
                try await test.check(old, answer(test, made: -8, asOf: -4).but { $0.subscription = id })
                try await test.check(new, answer(test, made: -2, asOf: -3).but { $0.subscription = id })
                let (claimOld, claimNew) = (try await test.claim(old), try await test.claim(new))
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { try await test.settle(claimNew, rejected()) }
                    group.addTask {
                        try await test.settle(
                            claimOld, answer(test, made: -8, asOf: -1).but { $0.subscription = id }.finding)
                    }
                    try await group.waitForAll()
                }
                let covered = try await test.text(
                    """
                    SELECT s.polled_by = $2::bigint AND EXISTS (
                        SELECT FROM ledger.poll_schedule p WHERE p.receipt_id = s.polled_by) AS covered
                    FROM ledger.subscription s WHERE s.original_transaction_id = $1::text
                    """, [.text(id.text), .int8(old.number)])
                #expect(covered == "true", "round \(round)")
            }
            #expect(
                try await test.text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == "0")
        }
    }
}
