import Postgres
import SeededRandom
import Subscriptions
import Testing

@testable import Tracking

@Suite("Many settlements at once lose nothing and never collide")
struct ConcurrentSettleTests {
    @Test(
        "Receipts that hold the same subscriptions write each event once, dense versions and whole timelines",
        arguments: [20_261_121 as UInt64, 7])
    func sharedSubscriptions(seed: UInt64) async throws {
        try await withLedger(connections: 8) { test in
            var random = Seeded(seed: seed)
            print(random)
            var receipts: [ReceiptID] = []
            for index in 0..<8 { receipts.append(try await test.upload("r\(index)", by: "customer \(index % 3)")) }
            for round in 0..<4 {
                var batches: [[Settlement]] = [[], [], [], []]
                for (index, receipt) in receipts.shuffled(using: &random).enumerated() {
                    let ids = (1...5).map { OriginalTransactionID("s\($0)") }.shuffled(using: &random).prefix(3)
                    // Answers of one round differ in age, so some arrive late.
                    let asOf = test.at(-99 + Double(round * 30) + Double.random(in: 0...3, using: &random).rounded())
                    let answers = ids.map { id in
                        Answer(from: test.at(-100), periods: 1 + round, asOf: asOf).but { $0.subscription = id }
                    }
                    let claim = try await test.claim(receipt)
                    batches[index % 4].append(test.settlement(claim, together(answers)))
                }
                let settled = try await withThrowingTaskGroup(of: Int.self) { group in
                    for batch in batches {
                        group.addTask {
                            try await test.ledger.settlements.settleInFull(batch)
                                .settled.count
                        }
                    }
                    return try await group.reduce(0, +)
                }
                #expect(settled == receipts.count)
            }
            try await expectEachOnce(test)
        }
    }

    private func expectEachOnce(_ test: TestLedger) async throws {
        let doubled = try await test.rows(
            """
            SELECT subscription_id, kind, detail->>'expires_at' AS expires, count(*) FROM ledger.event
            WHERE kind IN ('subscription.started', 'subscription.renewed') GROUP BY 1, 2, 3 HAVING count(*) > 1
            """)
        #expect(doubled == [])
        let missing = try await test.rows(
            """
            SELECT s.original_transaction_id, s.periods, count(e.*) FILTER (WHERE e.kind = 'subscription.renewed') AS renewed
            FROM ledger.subscription s JOIN ledger.event e USING (subscription_id) GROUP BY s.subscription_id
            HAVING s.periods - (SELECT COALESCE((f.detail->>'periods')::int, 1) FROM ledger.event f
                                WHERE f.subscription_id = s.subscription_id AND f.kind = 'subscription.started')
                <> count(e.*) FILTER (WHERE e.kind = 'subscription.renewed')
            """)
        #expect(missing == [])
        #expect(try await test.text("SELECT count(*) FROM ledger.subscription") == "5")
        try await test.expectSound()
    }

    @Test("Of two receipts that leave a subscription out at once, neither takes it over from the other")
    func omittedTogether() async throws {
        try await withLedger { test in
            let held = Answer(from: test.at(-20), asOf: test.at(-15)).but { $0.subscription = "held" }
            let other = held.but { $0.subscription = "other" }
            let receipts = [try await test.upload("1"), try await test.upload("2"), try await test.upload("3")]
            for receipt in receipts { try await test.check(receipt, together([held, other])) }
            // The first polls; the third is the newest, and leaves it out in the same settlement.
            var batch: [Settlement] = []
            for receipt in [receipts[0], receipts[2]] {
                let answer = other.but { $0.asOf = test.at(-1) }
                batch.append(test.settlement(try await test.claim(receipt), answer.finding))
            }
            _ = try await test.ledger.settlements.settleInFull(batch)
            let polled = try await test.text(
                "SELECT polled_by FROM ledger.subscription WHERE original_transaction_id = 'held'")
            #expect(polled == "\(receipts[1].number)")
            try await test.expectSound()
        }
    }

    @Test("A receipt that is uploaded again and again while it is settled never collides")
    func uploadsMeanwhile() async throws {
        try await withNewLedger(connections: 8) { test in
            let names = (0..<6).map { "r\($0)" }
            for name in names { try await test.upload(name, by: "ann") }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for reversed in [false, true] {
                    group.addTask {
                        for _ in 0..<40 {
                            let order = reversed ? names.reversed() : names
                            _ = try await test.ledger.intake.store(
                                order.map {
                                    Upload(
                                        appID: test.app.id, customer: "ann", receipt: Array($0.utf8), imported: false)
                                })
                        }
                    }
                }
                group.addTask {
                    for round in 0..<40 {
                        let quotas = Lane.allCases.map { Quota(app: test.app, lane: $0, receipts: 10) }
                        let claims = try await test.ledger.claims.claim(for: test.worker, quotas, leaseSeconds: 60)
                        let batch = claims.map { claim in
                            let answer = Answer(from: test.at(-10), asOf: test.at(-5) + .seconds(Int64(round))).but {
                                $0.subscription = OriginalTransactionID("s\(claim.receiptID)")
                            }
                            return test.settlement(claim, answer.finding)
                        }
                        _ = try await test.ledger.settlements.settleInFull(batch)
                    }
                }
                try await group.waitForAll()
            }
            let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
            #expect(try await test.text(deadlocks) == "0")
            try await test.expectSound()
        }
    }

    @Test("Of two first sights at once the receipt that was made later polls")
    func newestPolls() async throws {
        try await withLedger(connections: 8) { test in
            for round in 0..<10 {
                let (new, old) = (try await test.upload("new \(round)"), try await test.upload("old \(round)"))
                let (claimNew, claimOld) = (try await test.claim(new), try await test.claim(old))
                let answer = Answer(from: test.at(-10), asOf: test.at(-1)).but {
                    $0.subscription = OriginalTransactionID("s\(round)")
                }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { try await test.settle(claimNew, answer.but { $0.createdAt = test.at(-1) }.finding) }
                    group.addTask { try await test.settle(claimOld, answer.but { $0.createdAt = test.at(-9) }.finding) }
                    try await group.waitForAll()
                }
                let polling = try await test.text(
                    "SELECT polled_by FROM ledger.subscription WHERE original_transaction_id = $1::text",
                    [.text("s\(round)")])
                #expect(polling == new.description)
            }
        }
    }

    @Test("A poller that is refused while another receipt is first verified hands over to it, in either order")
    func heirOfTheSameMoment() async throws {
        try await withLedger(connections: 8) { test in
            for round in 0..<20 {
                let (poller, successor) = (
                    try await test.upload("poller \(round)"), try await test.upload("successor \(round)")
                )
                let answer = Answer(from: test.at(-10), asOf: test.at(-2)).but {
                    $0.subscription = OriginalTransactionID("s\(round)")
                    $0.createdAt = test.at(-8)
                }
                try await test.check(poller, answer)
                let (claimPoller, claimHeir) = (try await test.claim(poller), try await test.claim(successor))
                let newer = answer.but { ($0.createdAt, $0.asOf) = (test.at(-9), test.at(-1)) }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { try await test.settle(claimHeir, newer.finding) }
                    group.addTask { try await test.settle(claimPoller, rejected()) }
                    try await group.waitForAll()
                }
                let polling = try await test.text(
                    "SELECT polled_by FROM ledger.subscription WHERE original_transaction_id = $1::text",
                    [.text("s\(round)")])
                #expect(polling == successor.description, "round \(round)")
            }
        }
    }
}
