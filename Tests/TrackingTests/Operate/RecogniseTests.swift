import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("Many refusals at once are an incident of Apple's")
struct RecogniseTests {
    @Test(
        "More than 2 % of the answers, and three receipts, make an incident", arguments: [(3, 147), (3, 146), (2, 0)])
    func threshold(refused: Int, vouched: Int) async throws {
        try await withLedger { test in
            try await test.refuse(try await test.canaries(refused))
            try await test.vouched(vouched)
            try await test.ledger.operations.watchCanaries()
            let tooMany = refused >= 3 && refused * 100 > (refused + vouched) * 2
            let incidents: [[Cell]] = tooMany ? [["running", .count(refused + vouched), .count(refused)]] : []
            #expect(try await test.incidents() == incidents)
            #expect(try await test.rejections() == Array(repeating: tooMany ? "0" : "1", count: refused))
        }
    }

    @Test("Answers that vouch again are counted: those read in full, and equal ones")
    func counted() async throws {
        try await withLedger { test in
            let counted = "SELECT COALESCE(sum(answers), 0)::int AS answers FROM ledger.verified_minute"
            let receipts = try await test.canaries(2)
            #expect(try await test.text(counted) == "0")
            try await test.vouch(for: receipts)
            #expect(try await test.text(counted) == "2")
            try await test.refuse(receipts)
            #expect(try await test.text(counted) == "2")
            let fingerprint = Fingerprint(
                of: [1], lasting: [0..<1], app: test.app, environment: .production)
            let answer = Answer(from: test.at(-9), asOf: test.at(-0.5)).but {
                $0.subscription = OriginalTransactionID("s\(receipts[0])")
            }
            let reported = Settlement(
                claim: try await test.claim(receipts[0]), finding: answer.finding, body: [1], latestReceipt: nil,
                fingerprint: fingerprint)
            _ = try await test.ledger.settlements.settleInFull([reported])
            #expect(try await test.text(counted) == "3")
            let equal = EqualAnswer(
                to: try await test.claim(receipts[0]), fingerprint: fingerprint, asOf: test.at(-0.2))
            let confirmed = try await test.ledger.settlements.confirm([try #require(equal)])
            #expect(confirmed == [receipts[0]])
            #expect(try await test.text(counted) == "4")
        }
    }

    @Test(
        "What says nothing of Apple makes no incident: a wrong secret, another bundle, receipts never verified, silence"
    )
    func otherReasons() async throws {
        try await withLedger { test in
            let receipts = try await test.canaries(5)
            try await test.refuse(receipts, .wrongSecret)
            try await test.refuse(receipts, .otherBundle)
            for index in 0..<5 { try await test.refuse([try await test.upload("new \(index)")]) }
            for receipt in receipts { try await test.check(receipt, outage) }
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.incidents() == [])
            #expect(try await test.rejections() == Array(repeating: "1", count: 10))
        }
    }

    @Test("Receipts refused one after the other, over more than ten minutes, are refused for good as ever")
    func slowly() async throws {
        try await withLedger { test in
            try await test.vouched(1)
            for receipt in try await test.canaries(4) {
                try await test.refuse([receipt])
                try await test.ledger.operations.watchCanaries()
                try await test.pass(minutes: 6)
            }
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.incidents() == [])
            #expect(try await test.rejections() == Array(repeating: "1", count: 4))
            try await test.pass(minutes: 6)
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.rows("SELECT receipt_id FROM ledger.refusal") == [])
            #expect(try await test.rows("SELECT app_id FROM ledger.verified_minute") == [])
        }
    }

    @Test("Answers of long ago do not make the share small")
    func longAgo() async throws {
        try await withLedger { test in
            let receipts = try await test.canaries(3)
            try await test.vouched(1_000)
            try await test.pass(minutes: 12)
            try await test.refuse(receipts)
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.incidents() == [["running", 3, 3]])
        }
    }

    @Test("Receipts that Apple has not vouched for lately make no incident, also many at once", arguments: [1, 43_200])
    func afterAStop(speedup: Int) async throws {
        try await withLedger { test in
            let receipts = try await test.canaries(6)
            let stop = "interval '1 day' * 32 / \(speedup)"
            try await test.run("UPDATE ledger.receipt SET verified_at = verified_at - \(stop)")
            try await test.refuse(receipts, .accountGone, speedup: speedup)
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.incidents() == [])
            #expect(try await test.rejections() == Array(repeating: "1", count: 6))
        }
    }

    @Test("Equal answers vouch too: of receipts that say the same for months, each is a canary")
    func confirmed() async throws {
        try await withLedger { test in
            let receipts = try await test.canaries(3)
            try await test.run(
                """
                UPDATE ledger.receipt SET verified_at = verified_at - interval '90 days';
                UPDATE ledger.poll_schedule SET confirmed_as_of = now(), confirmed_at = now()
                """)
            try await test.refuse(receipts, .accountGone)
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.incidents() == [["running", 3, 3]])
        }
    }

    @Test("Another app's receipts are its own")
    func otherApp() async throws {
        try await withLedger { test in
            try await test.ledger.apps.add("com.example.other", callsPerSecond: 0)
            let other = try await test.ledger.apps.app("com.example.other")
            try await test.run(
                "INSERT INTO ledger.verified_minute VALUES (\(other.id), date_trunc('minute', now()), 0, 1000000)")
            try await test.refuse(try await test.canaries(3))
            try await test.ledger.operations.watchCanaries()
            #expect(try await test.incidents() == [["running", 3, 3]])
        }
    }
}
