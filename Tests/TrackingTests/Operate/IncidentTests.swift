import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("An incident makes no receipt suspect, and all its receipts are checked again")
struct IncidentTests {
    /// Whether a receipt is on the schedule, and due within a minute.
    private func scheduled(_ test: TestLedger) async throws -> [[Cell]] {
        try await test.database.cells(
            """
            SELECT r.receipt_id, p.due_at < now() + interval '1 minute' AS soon
            FROM ledger.receipt r LEFT JOIN ledger.poll_schedule p USING (receipt_id) ORDER BY 1
            """)
    }

    @Test(
        "Refusals before it was recognised are taken back, and what they retired is asked about again"
    )
    func takenBack() async throws {
        try await withLedger { test in
            let receipts = try await test.canaries(4)
            try await test.run(
                """
                UPDATE ledger.receipt SET rejections = 2, rejected_since = now() - interval '80 hours'
                WHERE receipt_id = \(receipts[0])
                """)
            let retired = try await test.refuse(receipts).filter { $0.nextCheckAt == nil }
            #expect(retired.map(\.receiptID) == [receipts[0]])
            #expect(try await test.rejections() == ["3", "1", "1", "1"])
            try await test.vouch(for: [receipts[3]])
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.incidents() == [["running", 5, 4]])
            try await test.expectRows(
                "SELECT rejections, rejected_since IS NULL FROM ledger.receipt ORDER BY receipt_id",
                [[2, false], [0, true], [0, true], [0, true]])
            let later: [[Cell]] = receipts.map { [.receipt($0), false] }
            #expect(try await scheduled(test) == later)
            // Once Apple vouches for it again, it polls again.
            try await test.vouch(for: [receipts[0]])
            #expect(
                try await test.text("SELECT count(*) FROM ledger.subscription WHERE polled_by IS NULL") == "0")
        }
    }

    @Test("A refusal while it runs counts as no answer, and is kept as what it is")
    func forgiven() async throws {
        try await withLedger { test in
            let receipts = try await test.canaries(4)
            try await test.run(
                "UPDATE ledger.receipt SET rejections = 2, rejected_since = now() - interval '80 hours'")
            try await test.refuse(Array(receipts[0..<3]))
            try await test.ledger.operations.watchCanaries()
            let before = try await test.rows("SELECT subscription_id, polled_by FROM ledger.subscription ORDER BY 1")
            let late = try await test.refuse([receipts[3]], .accountGone)
            #expect(late.map(\.outcome) == [.indeterminate])
            #expect(late.allSatisfy { $0.refusal == nil && $0.nextCheckAt != nil })
            let new = try await test.refuse([try await test.upload("new")])
            #expect(new.map(\.outcome) == [.indeterminate])
            #expect(try await test.rejections() == ["2", "2", "2", "2", "0"])
            #expect(
                try await test.rows("SELECT subscription_id, polled_by FROM ledger.subscription ORDER BY 1") == before)
            try await test.expectRows(
                "SELECT outcome, count(*) FROM ledger.observation GROUP BY 1 ORDER BY 1",
                [["verified", 4], ["rejected", 5]])
            let wrongSecret = try await test.refuse([receipts[3]], .wrongSecret)
            #expect(wrongSecret.map(\.outcome) == [.rejected])
            #expect(try await test.appNow().pause == nil)
        }
    }

    @Test("What a refused receipt polled comes back to it")
    func polling() async throws {
        try await withLedger { test in
            let receipts = try await test.canaries(3)
            let newer = try await test.upload("newer")
            let answer = Answer(from: test.at(-9), asOf: test.at(-0.5)).but {
                $0.subscription = OriginalTransactionID("s\(receipts[0])")
                $0.createdAt = test.at(-1)
            }
            try await test.check(newer, answer)
            let poller = "SELECT polled_by FROM ledger.subscription WHERE original_transaction_id = 's\(receipts[0])'"
            #expect(try await test.text(poller) == newer.description)
            try await test.refuse([newer])
            #expect(try await test.text(poller) == receipts[0].description)
            try await test.refuse(receipts)
            try await test.ledger.operations.watchCanaries()
            try await test.check(newer, answer.but { $0.asOf = test.at(-0.1) })
            #expect(try await test.text(poller) == newer.description)
        }
    }

    @Test("A receipt that was retired before the incident was recognised polls again what nothing polls")
    func pollingOfRetired() async throws {
        try await withLedger { test in
            let receipts = try await test.canaries(3)
            for _ in 1...3 {
                try await test.refuse(receipts, speedup: 2_592_000)
                try await Task.sleep(for: .milliseconds(60))
            }
            let unpolled = "SELECT count(*) FROM ledger.subscription WHERE polled_by IS NULL AND next_check_at IS NULL"
            #expect(try await test.text(unpolled) == "3")
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.incidents() == [["running", 3, 3]])
            #expect(try await test.text(unpolled) == "0")
            try await test.expectSound()
        }
    }

    @Test("It ends when Apple vouches again for ten minutes; then all that was refused is due, soon but not at once")
    func end() async throws {
        try await withLedger { test in
            let receipts = try await test.canaries(50)
            try await test.refuse(Array(receipts[0..<10]))
            try await test.ledger.operations.watchCanaries()
            try await test.pass(minutes: 11)
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.incidents() == [["running", 10, 10]], "Apple vouched for no receipt")
            try await test.vouch(for: Array(receipts[20..<40]))
            try await test.refuse([receipts[10]])
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.incidents() == [["running", 31, 11]], "one of 21 is more than 2 %")
            try await test.pass(minutes: 11)
            // One of those may be gone for good: it says nothing of Apple.
            try await test.refuse([receipts[0]])
            try await test.vouch(for: [receipts[1], receipts[11]])
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.incidents() == [["running", 33, 11]], "two are too few to tell")
            try await test.vouch(for: [receipts[12]])
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.incidents() == [["over", 34, 11]])
            let due = try await scheduled(test)
            let refused = [0, 2, 3, 4, 5, 6, 7, 8, 9, 10]
            for (index, receipt) in receipts.enumerated() {
                #expect(due[index] == [.receipt(receipt), .bool(refused.contains(index))])
            }
            let moments = try await test.text(
                "SELECT count(DISTINCT due_at) FROM ledger.poll_schedule WHERE due_at < now() + interval '1 minute'")
            #expect(moments == "10")
            #expect(try await test.rows("SELECT receipt_id FROM ledger.refusal") == [])
            try await test.refuse([receipts[0]])
            #expect(
                try await test.text("SELECT rejections FROM ledger.receipt WHERE receipt_id = \(receipts[0])") == "1")
        }
    }

    @Test("Receipts that are gone for good make one incident, not one after the other")
    func goneForGood() async throws {
        try await withLedger { test in
            let gone = try await test.canaries(4)
            try await test.refuse(gone, .accountGone)
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.incidents() == [["running", 4, 4]])
            try await test.pass(minutes: 11)
            try await test.run("UPDATE ledger.incident SET closed_at = now()")
            for tries in 1...3 {
                try await test.ledger.operations.watchCanaries()
                try await test.refuse(gone, .accountGone)
                try await test.ledger.operations.watchCanaries()
                #expect(try await test.incidents() == [["over", 4, 4]])
                #expect(try await test.rejections() == Array(repeating: "\(tries)", count: 4))
                try await test.pass(minutes: 12)
            }
            try await test.ledger.operations.watchCanaries()
            // Once Apple vouches for them again they are canaries again.
            try await test.vouch(for: gone)
            try await test.refuse(gone)
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.incidents().last == ["running", 8, 4])
        }
    }

    @Test("An answer dated hours ahead opens an incident of its own, which forgives no refusal and ends by itself")
    func wrongClock() async throws {
        try await withLedger { test in
            let receipts = try await test.canaries(3)
            let before = try await test.rows("SELECT s::text AS row FROM ledger.subscription s ORDER BY 1")
            let ahead = Finding.indeterminate(.clockAhead(by: .hours(3), status: 0))
            #expect(try await test.check(receipts[0], ahead).outcome == .indeterminate)
            try await test.check(receipts[1], ahead)
            #expect(try await test.rows("SELECT s::text AS row FROM ledger.subscription s ORDER BY 1") == before)
            #expect(try await test.refuse([receipts[2]]).map(\.outcome) == [.rejected])
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.incidents() == [["running", 2, 2]])
            let shown = try await test.ledger.admin.incidents(limit: 10)
            #expect(shown.map(\.kind) == [.clock])
            #expect(shown.first?.lastReason.contains("180 minutes ahead") == true)
            try await test.pass(minutes: 11)
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.incidents() == [["running", 2, 2]], "there was no answer since")
            try await test.vouch(for: [receipts[0]])
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.incidents() == [["over", 3, 2]])
            #expect(try await test.text("SELECT count(*) FROM ledger.refusal WHERE NOT counts") == "0")
        }
    }

    @Test("Settlements and watches at once make one incident; no refusal counts, and no task waits for ever")
    func atOnce() async throws {
        try await withNewLedger(connections: 8) { test in
            let receipts = try await test.canaries(40)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for part in 0..<4 {
                    group.addTask {
                        for start in stride(from: part, to: 40, by: 8) {
                            try await test.refuse([receipts[start], receipts[start + 4]])
                        }
                    }
                    group.addTask { for _ in 0..<10 { try await test.ledger.operations.watchCanaries() } }
                }
                try await group.waitForAll()
            }
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.incidents() == [["running", 40, 40]])
            #expect(try await test.rejections() == Array(repeating: "0", count: 40))
            #expect(try await test.text("SELECT count(*) FROM ledger.poll_schedule") == "40")
            let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
            #expect(try await test.text(deadlocks) == "0")
        }
    }

    @Test("The status shows running incidents and those of the last day")
    func status() async throws {
        try await withLedger { test in
            #expect(try await test.ledger.operations.status().incidents.isEmpty)
            let receipts = try await test.canaries(3)
            try await test.refuse(receipts)
            try await test.ledger.operations.watchCanaries()
            let running = try #require(try await test.ledger.operations.status().incidents.first)
            #expect(running.bundleID == "com.example.app" && running.kind == .refusals && running.closedAt == nil)
            #expect(running.asked == 3 && running.refused == 3 && running.lastReason == "Apple refused (21003).")
            #expect(running.openedAt >= test.now)
            try await test.run("UPDATE ledger.incident SET closed_at = now()")
            #expect(try await test.ledger.operations.status().incidents.map { $0.closedAt == nil } == [false])
            try await test.pass(minutes: 60 * 25)
            #expect(try await test.ledger.operations.status().incidents.isEmpty)
        }
    }
}
