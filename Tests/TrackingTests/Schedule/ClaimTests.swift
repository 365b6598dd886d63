import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("A claim leases what is due to one worker")
struct ClaimTests {
    private func quota(_ test: TestLedger, _ lane: Lane, _ receipts: Int) -> Quota {
        Quota(app: test.app, lane: lane, receipts: receipts)
    }

    /// Stores receipts that are due since long ago, in a lane.
    private func due(_ test: TestLedger, _ names: [String], lane: Lane) async throws -> [ReceiptID] {
        var ids: [ReceiptID] = []
        for name in names { ids.append(try await test.upload(name)) }
        _ = try await test.database.transaction { [ids] in
            try $0.query(
                .test(
                    "UPDATE ledger.poll_schedule SET lane = $2::text::ledger.lane, due_at = now() - interval '1 day', scheduled_for = now() - interval '1 day' WHERE receipt_id = ANY($1::bigint[])"
                ),
                [.int8s(ids.map(\.number)), .text(lane.rawValue)])
        }
        return ids
    }

    @Test("The database knows the same lanes in the same order")
    func lanes() async throws {
        try await withLedger { test in
            let stored = try await test.rows("SELECT unnest(enum_range(NULL::ledger.lane)) AS lane")
            #expect(stored == Lane.allCases.map(\.rawValue))
        }
    }

    @Test("Each lane gives what its quota allows, oldest first")
    func quotas() async throws {
        try await withLedger { test in
            let new = try await due(test, ["n1", "n2", "n3"], lane: .new)
            let sweep = try await due(test, ["s1", "s2"], lane: .sweep)
            try await test.run(
                "UPDATE ledger.poll_schedule SET due_at = due_at - interval '1 h' WHERE receipt_id = \(new[2])")
            let counted = try await test.ledger.claims.due(limit: 2)
            #expect(counted.map(\.lane) == [.new, .sweep])
            #expect(counted.map(\.receipts) == [2, 2])
            let first = try await test.ledger.claims.claim(
                for: test.worker, [quota(test, .new, 1), quota(test, .expiring, 5), quota(test, .sweep, 5)],
                leaseSeconds: 60)
            #expect(first.map(\.receiptID) == [new[2]] + sweep)
            #expect(first.map(\.lane) == [.new, .sweep, .sweep])
            #expect(first[0].receipt == Array("n3".utf8))
            let second = try await test.ledger.claims.claim(for: test.worker, [quota(test, .new, 9)], leaseSeconds: 60)
            #expect(second.map(\.receiptID) == Array(new[..<2]))
            #expect(
                try await test.ledger.claims.claim(for: test.worker, [quota(test, .new, 9)], leaseSeconds: 60).isEmpty)
        }
    }

    @Test("A lease that ran out is taken over, and each crash doubles the next lease")
    func takeOver() async throws {
        try await withLedger { test in
            let receipt = try await due(test, ["a"], lane: .expiring)[0]
            let other = try await test.ledger.claims.startWorker(host: "other", process: 2)
            var now = test.at(1)
            var leases: [Double] = []
            var tokens: [Int64] = []
            for attempt in 0..<3 {
                let worker = attempt % 2 == 0 ? test.worker : other
                let claims = try await test.ledger.claims.claim(
                    for: worker, [quota(test, .expiring, 5)], leaseSeconds: 60, now: now)
                #expect(claims.map(\.receiptID) == [receipt])
                #expect(claims.first?.attempts == attempt + 1)
                tokens += claims.map(\.leaseToken)
                let early = try await test.ledger.claims.claim(
                    for: other, [quota(test, .expiring, 5)], leaseSeconds: 60, now: now + .seconds(59))
                #expect(early.isEmpty)
                let end = try await test.text(
                    "SELECT extract(epoch FROM due_at - $1::timestamptz)::int AS seconds FROM ledger.poll_schedule",
                    [.instant(now)])
                leases.append(try #require(Double(end)))
                now = now + .seconds(Int64(leases[attempt]))
            }
            #expect(leases == [60, 120, 240])
            #expect(Set(tokens).count == 3)
            #expect(tokens == tokens.sorted())
        }
    }

    @Test("A receipt whose workers crashed three times is asked about alone, ever more seldom, until an answer comes")
    func quarantine() async throws {
        try await withLedger { test in
            let receipt = try await due(test, ["a"], lane: .expiring)[0]
            var now = test.at(1)
            for _ in 0..<3 {
                _ = try await test.ledger.claims.claim(
                    for: test.worker, [quota(test, .expiring, 5)], leaseSeconds: 60, now: now)
                now = now + .days(1)
            }
            let fourth = try await test.ledger.claims.claim(
                for: test.worker, [quota(test, .expiring, 5)], leaseSeconds: 60, now: now)
            #expect(fourth.isEmpty)
            try await test.expectRows(
                "SELECT lane, leased_by, crashes FROM ledger.poll_schedule", [["quarantine", nil, 3]])
            var leases: [String] = []
            var alone: [Claim] = []
            for _ in 0..<9 {
                alone = try await test.ledger.claims.claim(
                    for: test.worker, [quota(test, .quarantine, 1)], leaseSeconds: 60, now: now)
                #expect(alone.map(\.receiptID) == [receipt])
                leases.append(
                    try await test.text(
                        "SELECT extract(epoch FROM due_at - $1::timestamptz)::int AS s FROM ledger.poll_schedule",
                        [.instant(now)]))
                now = now + .days(1)
            }
            #expect(leases == ["480", "960", "1920", "3840", "7680", "15360", "30720", "61440", "61440"])
            let answer = Answer(from: test.at(-9), asOf: test.at(-1))
            try await test.settle(try #require(alone.first), answer.finding)
            try await test.expectRows("SELECT lane, crashes FROM ledger.poll_schedule", [["sweep", 0]])
        }
    }

    @Test("While an app's answers fail only a few of its receipts are tried")
    func probes() async throws {
        try await withLedger { test in
            _ = try await due(test, (0..<9).map { "r\($0)" }, lane: .expiring)
            try await fail(.app(test.app.id), 3, pauseSeconds: 30)
            #expect(try await test.ledger.claims.due(limit: 100).isEmpty)
            #expect(try await test.appNow().pause?.reason == "HTTP 503")
            try await test.run("UPDATE ledger.app_budget SET paused_until = now()")
            #expect(try await test.ledger.claims.due(limit: 100).map(\.receipts) == [3])
            try await fail(.app(test.app.id), 0, pauseSeconds: 0)
            #expect(try await test.ledger.claims.due(limit: 100).map(\.receipts) == [9])
            try await fail(.everyone, 3, pauseSeconds: 30)
            #expect(try await test.ledger.claims.due(limit: 100).isEmpty)
            #expect(try await test.ledger.claims.takeBudget([(app: test.app, calls: 5)]) == [test.app.id: 0])
            #expect(try await test.appNow().pause?.reason == "HTTP 503")
            #expect(try await test.appNow().appleFailures == 3)
            try await test.run("UPDATE ledger.apple_breaker SET paused_until = now()")
            #expect(try await test.ledger.claims.due(limit: 100).map(\.receipts) == [3])

            func fail(_ owner: RateLimitOwner, _ failures: Int, pauseSeconds: Double) async throws {
                try await test.ledger.apps.changeRateLimit(of: owner) { pace, _ in
                    var next = pace
                    next.failures = failures
                    return RateLimitChange(rateLimit: next, pauseSeconds: pauseSeconds, reason: "HTTP 503")
                }
            }
        }
    }

    @Test("What was due before a mark is not looked for, neither counted nor claimed")
    func marks() async throws {
        try await withLedger { test in
            let receipts = try await due(test, ["a", "b"], lane: .expiring)
            try await test.run("UPDATE ledger.poll_schedule SET due_at = now() WHERE receipt_id = \(receipts[1])")
            let mark = DueMark(appID: test.app.id, lane: .expiring, dueAt: test.at(-0.5))
            #expect(try await test.ledger.claims.due(limit: 9).map(\.receipts) == [2])
            #expect(try await test.ledger.claims.due(limit: 9, from: [mark]).map(\.receipts) == [1])
            let other = DueMark(appID: test.app.id, lane: .new, dueAt: test.at(-0.5))
            #expect(try await test.ledger.claims.due(limit: 9, from: [other]).map(\.receipts) == [2])
            let claims = try await test.ledger.claims.claim(
                for: test.worker, [Quota(app: test.app, lane: .expiring, receipts: 9, dueFrom: mark.dueAt)],
                leaseSeconds: 60)
            #expect(claims.map(\.receiptID) == [receipts[1]])
            #expect(try #require(claims.first).dueAt >= test.now)
        }
    }

    @Test("Many workers at once never hold the same receipt")
    func skipLocked() async throws {
        try await withLedger(connections: 8) { test in
            _ = try await due(test, (0..<200).map { "r\($0)" }, lane: .expiring)
            let held = try await withThrowingTaskGroup(of: [ReceiptID].self) { group in
                for _ in 0..<12 {
                    group.addTask {
                        var mine: [ReceiptID] = []
                        for _ in 0..<6 {
                            let quota = Quota(app: test.app, lane: .expiring, receipts: 7)
                            mine += try await test.ledger.claims.claim(for: test.worker, [quota], leaseSeconds: 60).map(
                                \.receiptID)
                        }
                        return mine
                    }
                }
                return try await group.reduce([], +)
            }
            #expect(held.count == 200)
            #expect(Set(held).count == 200)
        }
    }

    @Test("What is handed back is due as before, and the attempt does not count")
    func release() async throws {
        try await withLedger { test in
            let receipt = try await due(test, ["a"], lane: .expiring)[0]
            let claims = try await test.ledger.claims.claim(
                for: test.worker, [quota(test, .expiring, 5)], leaseSeconds: 60)
            let foreign = claims.map { claim in
                var claim = claim
                claim.worker = WorkerID(number: test.worker.number + 1)
                return claim
            }
            try await test.ledger.claims.release(foreign)
            #expect(
                try await test.ledger.claims.claim(for: test.worker, [quota(test, .expiring, 5)], leaseSeconds: 60)
                    .isEmpty)
            try await test.ledger.claims.release(claims)
            let again = try await test.ledger.claims.claim(
                for: test.worker, [quota(test, .expiring, 5)], leaseSeconds: 60)
            #expect(again.map(\.receiptID) == [receipt])
            #expect(again.map(\.attempts) == [1])
        }
    }

    @Test("What became due after the run began is left alone")
    func dueBy() async throws {
        try await withLedger { test in
            _ = try await due(test, ["a"], lane: .expiring)
            let quotas = [quota(test, .expiring, 5)]
            #expect(
                try await test.ledger.claims.claim(for: test.worker, quotas, leaseSeconds: 60, dueBy: test.at(-2))
                    .isEmpty)
            #expect(try await test.ledger.claims.due(limit: 5, by: test.at(-2)).isEmpty)
            #expect(try await test.ledger.claims.overdue(by: test.at(0), leaseSeconds: 60).receipts == 1)
            #expect(
                try await test.ledger.claims.claim(for: test.worker, quotas, leaseSeconds: 60, dueBy: test.at(0)).count
                    == 1)
            let leased = try await test.ledger.claims.overdue(by: test.at(0), leaseSeconds: 60)
            #expect(leased.why == ["com.example.app: 1 left: 1 held by another worker"])
        }
    }

    @Test("One receipt is claimed at once, due or not, but not while another holds it")
    func claimOne() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, Answer(from: test.at(-9), asOf: test.at(-1)))
            let claim = try await test.claim(receipt)
            let other = try await test.ledger.claims.startWorker(host: "other", process: 1)
            let busy = await #expect(throws: LedgerError.self) {
                _ = try await test.ledger.claims.claim(receipt, for: other, leaseSeconds: 60)
            }
            #expect(busy?.kind == .busy)
            try await test.ledger.claims.release([claim])
            #expect(try await test.claim(receipt).attempts == 1)
            // Its own lease is one that was left behind: the newer one counts, and the older one can no longer give it back.
            let again = try await test.claim(receipt)
            #expect(again.attempts == 2 && again.leaseToken > claim.leaseToken)
            try await test.ledger.claims.release([claim])
            await #expect(throws: LedgerError.self) {
                _ = try await test.ledger.claims.claim(receipt, for: other, leaseSeconds: 60)
            }
            let missing = await #expect(throws: LedgerError.self) { _ = try await test.claim(ReceiptID(999)) }
            #expect(missing?.kind == .notFound)
        }
    }

    @Test("What a process that is gone had leased is taken over before the lease ends, but only once")
    func gone() async throws {
        try await withLedger { test in
            let claims = test.ledger.claims
            let receipts = try await due(test, ["a", "b", "c"], lane: .expiring)
            let other = try await claims.startWorker(host: "other", process: 2, leaseSeconds: 60)
            let third = try await claims.startWorker(host: "third", process: 3, leaseSeconds: 60)
            try await test.run("UPDATE ledger.worker SET started_at = now() - interval '1 hour'")
            func silent(_ worker: WorkerID, seconds: Int) async throws {
                try await claims.heartbeat(worker)
                try await test.run(
                    """
                    UPDATE ledger.worker SET heartbeat_at = now() - interval '\(seconds) s' WHERE worker_id = \(worker.number)
                    """)
            }
            func take(_ receipt: ReceiptID, by worker: WorkerID) async -> Bool {
                do { return try await claims.claim(receipt, for: worker, leaseSeconds: 60).receiptID == receipt } catch
                {
                    return false
                }
            }
            try await silent(other, seconds: 1)
            #expect(try await claims.claim(for: other, [quota(test, .expiring, 9)], leaseSeconds: 60).count == 3)
            #expect(try await claims.freeLeases() == 0, "it lives")
            #expect(await !take(receipts[0], by: third))
            #expect(try await test.ledger.claims.secondsHeld(receipts[0]) == nil)
            try await silent(other, seconds: 12)
            #expect(try await claims.freeLeases() == 0, "it may live")
            #expect(await !take(receipts[0], by: third))
            let seconds = try #require(try await test.ledger.claims.secondsHeld(receipts[0]))
            #expect((6...8).contains(seconds))
            try await silent(other, seconds: 21)
            #expect(try await test.ledger.claims.secondsHeld(receipts[0]) == 1)
            #expect(await take(receipts[0], by: third), "a customer waits")
            #expect(try await claims.freeLeases() == 2)
            #expect(try await claims.freeLeases() == 0)
            let taken = try await claims.claim(for: test.worker, [quota(test, .expiring, 9)], leaseSeconds: 60)
            #expect(Set(taken.map(\.receiptID)) == Set(receipts.dropFirst()))
            try await test.expectRows("SELECT DISTINCT crashes FROM ledger.poll_schedule", [[1]])
            for worker in [third, test.worker] { try await silent(worker, seconds: 21) }
            #expect(try await claims.freeLeases() == 0, "what was left behind before waits for its lease")
            #expect(await !take(receipts[0], by: other))
            let held = try #require(try await test.ledger.claims.secondsHeld(receipts[0]))
            #expect((50...60).contains(held))
        }
    }

    @Test("A goodbye counts at once; what sends no heartbeat keeps its lease, and what checks on request is no worker")
    func goodbye() async throws {
        try await withLedger { test in
            let claims = test.ledger.claims
            let receipts = try await due(test, ["a", "b"], lane: .expiring)
            let command = try await claims.startWorker(host: "h", process: 2, singly: true, leaseSeconds: 60)
            _ = try await claims.claim(receipts[0], for: command, leaseSeconds: 60)
            try await test.run(
                "UPDATE ledger.worker SET started_at = now() - interval '1 min', heartbeat_at = now() - interval '1 min', stopped_at = now() - interval '1 min' WHERE worker_id = \(command.number)"
            )
            #expect(try await claims.freeLeases() == 0)
            let seconds = try #require(try await test.ledger.claims.secondsHeld(receipts[0]))
            #expect((55...60).contains(seconds), "the rest of the lease")
            try await claims.heartbeat(command)
            try await test.expectRows("SELECT count(*) FROM perennial.worker_now WHERE pid = 2", [[0]])
            let worker = try await claims.startWorker(host: "h", process: 3, leaseSeconds: 60)
            _ = try await claims.claim(receipts[1], for: worker, leaseSeconds: 60)
            try await claims.heartbeat(worker)
            try await test.expectRows("SELECT count(*) FROM perennial.worker_now WHERE pid = 3", [[1]])
            #expect(try await claims.freeLeases() == 0)
            try await claims.heartbeat(worker, stopped: true)
            #expect(try await claims.freeLeases() == 1)
        }
    }

    @Test("The newest receipt Apple gave is asked with first, the device's own every second time")
    func whichBytes() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("device")
            try await test.check(receipt, Answer(from: test.at(-9), asOf: test.at(-1)), latestReceipt: "latest")
            let claim = try await test.claim(receipt)
            #expect(claim.receipt == Array("latest".utf8))
            try await test.settle(claim, outage)
            #expect(try await test.claim(receipt).receipt == Array("device".utf8))
        }
    }
}

@Suite("A receipt that Apple calls malformed is checked ever more seldom")
struct MalformedTests {
    private let malformed = Finding.indeterminate(CheckFailure(reason: "Malformed.", status: 21002, retryable: true))

    /// The longest of many waits after the given number of attempts, in seconds; each wait is drawn below a limit.
    private func longestWait(_ test: TestLedger, after attempts: Int, _ finding: Finding) async throws -> Double {
        var longest = 0.0
        for number in 0..<24 {
            let receipt = try await test.upload("\(attempts) \(number) \(finding)")
            try await test.run(
                "UPDATE ledger.poll_schedule SET attempts = \(attempts - 1) WHERE receipt_id = \(receipt)")
            let claim = try await test.claim(receipt)
            #expect(claim.attempts == attempts)
            try await test.settle(claim, finding)
            let wait = try await test.text(
                """
                SELECT extract(epoch FROM s.due_at - r.asked_at)::float8 AS wait
                FROM ledger.poll_schedule s JOIN ledger.receipt r USING (receipt_id) WHERE receipt_id = \(receipt)
                """)
            longest = max(longest, try #require(Double(wait)))
        }
        return longest
    }

    @Test("They are checked often for half an hour, then seldom; an outage alone makes no check seldom")
    func backOff() async throws {
        try await withLedger { test in
            let (last, first, away) = (
                try await longestWait(test, after: 12, malformed), try await longestWait(test, after: 13, malformed),
                try await longestWait(test, after: 40, outage)
            )
            #expect((150...300).contains(last))
            #expect((1800...3600).contains(first))
            #expect((150...300).contains(away))
            // Those that are probably no receipts take no turn from customers who wait.
            try await test.expectRows(
                "SELECT lane, count(*) FROM ledger.poll_schedule GROUP BY 1 ORDER BY 1", [["new", 48], ["sweep", 24]])
        }
    }
}
