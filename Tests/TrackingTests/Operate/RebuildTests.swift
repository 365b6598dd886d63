import Postgres
import SQL
import SeededRandom
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// What is damaged in it is damaged one after the other.
private let damageable: OncePerSuite<(TestLedger, AnswerLibrary, KeptRows)> = OncePerSuite { lend in
    try await RebuildTests().withHistory { test, library in
        try await lend((test, library, try await KeptRows(in: test.connectionString)))
    }
}

@Suite("All that is stored follows from the observations", damageable)
struct RebuildTests {
    /// Settles an answer whose body can be read again; `repeated` is the body of one that it equals.
    func tell(
        _ test: TestLedger, _ library: AnswerLibrary, _ receipt: ReceiptID, _ finding: Finding,
        fingerprint: Fingerprint? = nil, server: ServerRead? = nil, repeated: [UInt8]? = nil
    ) async throws {
        var body = repeated ?? []
        if case .verified(let evidence) = finding, repeated == nil { body = library.keep(evidence) }
        let settlement = Settlement(
            claim: try await test.claim(receipt), finding: finding, body: body, latestReceipt: nil,
            fingerprint: fingerprint, server: server)
        let settled = try await test.ledger.settlements.settleInFull([settlement])
        #expect(settled.failures.map(\.reason) == [])
    }

    /// Runs a whole rebuild, one thing a batch.
    private func rebuild(
        _ test: TestLedger, _ library: AnswerLibrary, correcting: Bool, _ scope: RebuildScope = RebuildScope()
    ) async throws -> RebuildBatch {
        var sum = RebuildBatch()
        var place: RebuildPlace? = .start
        while let here = place {
            let batch = try await test.ledger.operations.rebuild(
                from: here, limit: 1, scope, correcting: correcting, reading: library.reading
            )
            sum.examined += batch.examined
            sum.corrected += batch.corrected
            sum.differences += batch.differences
            sum.gaps += batch.gaps
            place = batch.next
        }
        return sum
    }

    @Test(
        "A row that Apple signed milliseconds after its answer moves no clock, also of a period that was replaced elsewhere"
    )
    func signedLater() async throws {
        try await withNewLedger { test in
            let library = AnswerLibrary()
            func signed(_ answer: Answer) -> [TransactionRow] {
                answer.rows.map { row in
                    var row = row
                    (row.source, row.asOf) = (.signedText, row.asOf + Delay(milliseconds: 7))
                    return row
                }
            }
            let month = Answer(from: test.at(-20), asOf: test.at(-1))
            var evidence = month.evidence
            evidence.transactions = signed(month)
            (evidence.transactions[0].cancelledAt, evidence.transactions[0].isUpgraded) = (test.at(-5), true)
            evidence.transactions += signed(
                Answer(from: test.at(-5), asOf: test.at(-1)).but { ($0.subscription, $0.product) = ("2000", "plus") })
            try await tell(test, library, try await test.upload("a"), .verified(evidence))
            try await test.expectRows(
                "SELECT count(*) AS n FROM ledger.period WHERE replaced_by = '2000' AND is_upgraded", [[1]])
            #expect(try await test.differences(from: library) == [])
        }
    }

    @Test(
        "What answers of several receipts and channels take back, a rebuild takes back too, after each of them",
        arguments: 0..<6 as Range<UInt64>)
    func takenBack(seed: UInt64) async throws {
        try await withNewLedger { test in
            var random = Seeded(seed: 42_200 + seed)
            let library = AnswerLibrary()
            let receipts = [try await test.upload("a"), try await test.upload("b"), try await test.upload("c")]
            var minutes = -300.0
            for place in 0..<16 {
                minutes += [1, 6, 11].randomElement(using: &random) ?? 1
                let asOf = test.at(minutes / 1_440)
                let (who, isRefunded) = (
                    place < 3 ? place : .random(in: 0..<3, using: &random), Bool.random(using: &random)
                )
                let month = Answer(from: test.at(-20), asOf: asOf).but {
                    $0.refunded = isRefunded ? (0, test.at(-1)) : nil
                }
                var evidence = month.evidence
                if case .verified(let bought) = purchase(
                    "8", at: test.at(-10), asOf: asOf, refundedAt: isRefunded ? test.at(-1) : nil)
                {
                    evidence.transactions += bought.transactions
                }
                if who == 2 {
                    for index in evidence.transactions.indices {
                        evidence.transactions[index].source = .signedText
                        evidence.transactions[index].path = "history[0].signedTransactions[\(index)]"
                    }
                }
                try await tell(test, library, receipts[who], .verified(evidence))
                #expect(try await test.differences(from: library) == [], "\(random) at \(place)")
            }
        }
    }

    @Test(
        "What answers that arrive up to ten minutes late state or take back, a rebuild makes the same of, after each of them",
        arguments: 0..<8 as Range<UInt64>)
    func takenBackLate(seed: UInt64) async throws {
        try await withNewLedger { test in
            var random = Seeded(seed: 47_200 + seed)
            let library = AnswerLibrary()
            let receipts = [try await test.upload("a"), try await test.upload("b"), try await test.upload("c")]
            var minutes = -300.0
            var answers: [(arrival: Double, who: Int, evidence: Evidence)] = []
            for place in 0..<12 {
                minutes += [1, 4, 6, 11].randomElement(using: &random) ?? 1
                let (asOf, isRefunded) = (test.at(minutes / 1_440), Bool.random(using: &random))
                var evidence = Answer(from: test.at(-20), asOf: asOf).but {
                    $0.refunded = isRefunded ? (0, test.at(-1)) : nil
                }.evidence
                // Either channel may take the refund of a period back. That of a purchase does not say who did.
                if case .verified(let bought) = purchase(
                    "8", at: test.at(-10), asOf: asOf, refundedAt: isRefunded ? test.at(-1) : nil),
                    seed.isMultiple(of: 2)
                {
                    evidence.transactions += bought.transactions
                }
                let isServer = seed.isMultiple(of: 2) ? seed.isMultiple(of: 4) : place % 3 == 2
                for index in evidence.transactions.indices where isServer {
                    evidence.transactions[index].source = .signedText
                    evidence.transactions[index].path = "history[0].signedTransactions[\(index)]"
                    // A refund that comes back by the other channel alone has lost its share.
                    if isRefunded, seed.isMultiple(of: 4) {
                        evidence.transactions[index].revocationPercentage = 50_000
                    }
                }
                answers.append((minutes + .random(in: 0..<9.9, using: &random), place % 3, evidence))
            }
            for (place, answer) in answers.sorted(by: { $0.arrival < $1.arrival }).enumerated() {
                try await tell(test, library, receipts[answer.who], .verified(answer.evidence))
                let differences = try await test.differences(from: library)
                #expect(differences == [], "\(random) at \(place)")
                guard differences.isEmpty else { return }
            }
        }
    }

    /// A ledger in which much has happened: renewals, equal answers, a refund, an old snapshot, a lagging replica, an
    /// outage that ended access, a purchase that was refunded, refusals.
    func withHistory(_ body: (TestLedger, AnswerLibrary) async throws -> Void) async throws {
        try await withNewLedger { test in
            let library = AnswerLibrary()
            let receipts = [
                try await test.upload("a"), try await test.upload("b"), try await test.upload("c", by: "bob"),
                try await test.upload("d", by: "cid"),
            ]
            let first = Answer(from: test.at(-70), asOf: test.at(-69))
            let same = Fingerprint(
                of: [1], lasting: [0..<1], app: test.app, environment: .production)
            try await tell(test, library, receipts[0], .verified(first.evidence))
            try await tell(test, library, receipts[0], .verified(first.but { $0.asOf = test.at(-60) }.evidence))
            try await tell(test, library, receipts[1], .verified(first.but { $0.asOf = test.at(-65) }.evidence))
            try await tell(test, library, receipts[0], outage)
            // The equal answer that follows moves the clocks of the subscription and of the purchase.
            var renewed = first.but { ($0.periods, $0.asOf) = (3, test.at(-9)) }.evidence
            if case .verified(let bought) = purchase("8", at: test.at(-10), asOf: test.at(-9)) {
                renewed.transactions += bought.transactions
            }
            try await tell(test, library, receipts[0], .verified(renewed), fingerprint: same)
            let claim = try await test.claim(receipts[0])
            if let equal = EqualAnswer(to: claim, fingerprint: same, asOf: test.at(-5)) {
                let confirmed = try await test.ledger.settlements.confirm([equal])
                #expect(confirmed == [receipts[0]])
            } else {
                Issue.record("The claim has no fingerprint.")
            }
            // Refused renewal, then silence until the allowance ran out.
            let held = Answer(from: test.at(-70), asOf: test.at(-45)).but { $0.subscription = "2000" }
            try await tell(test, library, receipts[2], .verified(held.evidence))
            try await tell(test, library, receipts[2], rejected())
            #expect(try await endAllowances(test.ledger) == 1)
            try await tell(test, library, receipts[3], purchase("7", at: test.at(-9), asOf: test.at(-8)))
            try await tell(
                test, library, receipts[3], purchase("7", at: test.at(-9), asOf: test.at(-7), refundedAt: test.at(-8)))
            let refunded = Answer(from: test.at(-20), asOf: test.at(-4)).but {
                ($0.subscription, $0.refunded) = ("3000", (0, test.at(-6)))
            }
            try await tell(test, library, receipts[3], .verified(refunded.evidence))
            try await body(test, library)
        }
    }

    @Test("An untouched ledger is what its observations say, and stays as it is")
    func faithful() async throws {
        try await withHistory { test, library in
            let before = try await test.everything()
            let verified = try await rebuild(test, library, correcting: false)
            #expect(verified.differences == [])
            #expect(verified.gaps.map(\.reason) == [])
            #expect(verified.examined == 8)
            #expect(try await rebuild(test, library, correcting: true).corrected == 0)
            #expect(try await test.everything() == before)
        }
    }

    @Test(
        "An equal answer about a receipt that does not poll counts, also where later ones confirmed only what it polls")
    func equalElsewhere() async throws {
        try await withNewLedger { test in
            let library = AnswerLibrary()
            let (poller, other) = (try await test.upload("a"), try await test.upload("b"))
            let same = Fingerprint(of: [1], lasting: [0..<1], app: test.app, environment: .production)
            for (receipt, asOf) in [(poller, -8.0), (other, -7), (other, -6)] {
                guard case .verified(var said) = purchase("7", at: test.at(-9), asOf: test.at(asOf)),
                    case .verified(let more) = purchase("8", at: test.at(-9), asOf: test.at(asOf))
                else { return }
                if receipt == other { said.transactions += more.transactions }
                try await tell(test, library, receipt, .verified(said), fingerprint: receipt == other ? same : nil)
            }
            let claim = try await test.claim(other)
            let equal = try #require(EqualAnswer(to: claim, fingerprint: same, asOf: test.at(-5)))
            #expect(try await test.ledger.settlements.confirm([equal]) == [other])
            #expect(try await test.text("SELECT count(*) FROM ledger.observation") == "2")
            for _ in 1...2 {
                #expect(try await rebuild(test, library, correcting: false).differences == [])
                try await tell(test, library, other, outage)
            }
        }
    }

    /// What may be wrong, each with the name of a fact that is found.
    static let damages = [
        ("UPDATE ledger.period SET expires_at = expires_at + interval '1 day'", ".expires_at"),
        ("UPDATE ledger.period SET is_trial = true", ".is_trial"),
        ("UPDATE ledger.period SET web_order_line_item_id = 'x' || period_id", ".product_id"),
        ("DELETE FROM ledger.period WHERE period_id = (SELECT max(period_id) FROM ledger.period)", ".product_id"),
        (
            "INSERT INTO ledger.transaction_alias (period_id, transaction_id) SELECT period_id, 'x' || period_id FROM ledger.period",
            ".transaction_ids"
        ),
        ("DELETE FROM ledger.transaction_alias", ".transaction_ids"),
        ("UPDATE ledger.subscription SET renewal = jsonb_set(renewal, '{will_renew}', 'false')", "renewal"),
        ("UPDATE ledger.subscription SET will_renew = NULL, renews_to_product_id = NULL", "will_renew"),
        ("UPDATE ledger.subscription SET expires_at = now()", "expires_at"),
        ("UPDATE ledger.subscription SET periods = 7", "periods"),
        ("UPDATE ledger.subscription SET as_of = as_of - interval '1 hour'", "as_of"),
        ("UPDATE ledger.subscription SET leeway_ms = 1", "leeway_ms"),
        ("UPDATE ledger.subscription SET renewal_expected = NOT renewal_expected", "renewal_expected"),
        (
            "UPDATE ledger.subscription_span SET state = 'billing_retry', reason = NULL WHERE state = 'expired'",
            "timeline from"
        ),
        ("DELETE FROM ledger.subscription_span WHERE entitled", "timeline from"),
        ("UPDATE ledger.purchase SET revoked_at = NULL", "revoked_at"),
        ("UPDATE ledger.purchase SET as_of = as_of - interval '1 hour'", "as_of"),
        ("UPDATE ledger.purchase SET facts = jsonb_set(facts, '{terms,quantity}', '9')", "facts.quantity"),
        ("UPDATE ledger.purchase SET transaction_ids = transaction_ids || 'x'::text", "transaction_ids"),
        ("UPDATE ledger.current_entitlements SET spans = '{}'", "entitlement "),
        ("UPDATE ledger.current_entitlements SET spans[1].product_id = 'other'", "entitlement "),
        ("DELETE FROM ledger.current_entitlements", "entitlement "),
        ("UPDATE ledger.current_entitlements SET subscriptions = '{}'", "entitlement "),
        ("UPDATE ledger.current_entitlements SET catalog_changed_at = '2100-01-01'", "entitlement "),
    ]

    @Test(
        "A rebuild finds manual damage, mends it under the same keys, and writes no event", .serialized,
        arguments: damages)
    func damage(_ statement: String, _ fact: String) async throws {
        try await damageable.use { test, library, rows in
            try await rows.putBack()
            let keys = "SELECT p.period_id, p.purchased_at FROM ledger.period p ORDER BY 1"
            let checks = """
                SELECT ledger.checked_at(p, poller) FROM ledger.purchase p
                LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = p.polled_by ORDER BY p.purchase_id
                """
            let (periods, events) = (
                try await test.rows(keys), try await test.rows("SELECT e::text AS e FROM ledger.event e")
            )
            let checked = try await test.rows(checks)
            try await test.run(statement)
            let damaged = try await test.everything()
            let found = try await rebuild(test, library, correcting: false)
            #expect(found.differences.contains { $0.fact.contains(fact) }, "\(found.differences)")
            #expect(try await test.everything() == damaged, "verifying changed something")
            let mended = try await rebuild(test, library, correcting: true)
            // What is stored of entitlements follows from facts: with these it is mended too.
            let ofFacts = found.differences.filter { !$0.fact.hasPrefix("entitlement ") }
            #expect(mended.corrected > 0 && mended.differences == (ofFacts.isEmpty ? found.differences : ofFacts))
            #expect(try await rebuild(test, library, correcting: false).differences == [])
            #expect(try await test.rows("SELECT e::text AS e FROM ledger.event e") == events)
            #expect(try await test.rows(checks) == checked)
            if !statement.hasPrefix("DELETE FROM ledger.period")
                && !statement.hasPrefix("DELETE FROM ledger.transaction_alias")
            {
                #expect(try await test.rows(keys) == periods)
            }
            let recorded = try await test.text("SELECT count(*) FROM ledger.correction")
            #expect(recorded == "\(ofFacts.count)")
            try await test.expectSound()
        }
    }

    @Test("A difference of entitlements names the fields of the spans that only one side has")
    func entitlementFields() async throws {
        try await withHistory { test, library in
            try await test.run("UPDATE ledger.current_entitlements SET spans[1].product_id = 'other'")
            let found = try await rebuild(test, library, correcting: false).differences
            #expect(!found.isEmpty)
            for difference in found {
                let (stored, rebuilt) = (difference.stored ?? "", difference.rebuilt ?? "")
                #expect(stored.hasPrefix("starts 2") && stored.contains(", product_id other, state "), "\(stored)")
                #expect(rebuilt.hasPrefix("starts 2") && !rebuilt.contains("product_id other"), "\(rebuilt)")
            }
        }
    }

    @Test("A correction is known from then on; what was known before stays on record")
    func bitemporal() async throws {
        try await withHistory { test, library in
            try await test.run("UPDATE ledger.subscription_span SET product_id = 'gold' WHERE entitled")
            let during = try await test.ledger.now()
            let spans = try await test.text("SELECT count(*) FROM ledger.subscription_span")
            #expect(try await rebuild(test, library, correcting: true).corrected > 0)
            #expect(try await test.entitled("gold", knownAt: during).prefix(3) == [true, "gold", "active"])
            #expect(try await test.entitled("gold")[0] == false)
            #expect(try await test.entitled("monthly").prefix(3) == [true, "monthly", "active"])
            #expect(try await test.text("SELECT count(*) FROM ledger.subscription_span") > spans)
            let versions = try await test.rows(
                "SELECT DISTINCT c.version = s.version AS same FROM ledger.correction c JOIN ledger.subscription s USING (subscription_id)"
            )
            #expect(versions == ["true"])
        }
    }

    @Test("What is no longer kept is said and never damaged")
    func retention() async throws {
        try await withHistory { test, library in
            let rows = try await KeptRows(in: test.connectionString)
            for statement in [
                "UPDATE ledger.observation SET body = NULL WHERE outcome = 'verified' AND first_as_of < now() - interval '50 days'",
                "DELETE FROM ledger.observation WHERE first_as_of < now() - interval '50 days'",
                "DELETE FROM ledger.observation",
            ] {
                try await test.run(statement)
                try await test.run("UPDATE ledger.subscription SET periods = 7 WHERE original_transaction_id = '1000'")
                let before = try await test.everything()
                let rebuilt = try await rebuild(test, library, correcting: true)
                let subject = "com.example.app Production subscription 1000"
                #expect(rebuilt.gaps.contains { $0.subject == subject }, "\(statement)")
                #expect(rebuilt.corrected == 0, "\(statement)")
                #expect(try await test.everything() == before, "\(statement)")
                try await rows.putBack()
            }
        }
    }

    @Test("A rebuild can be limited to an app and to a customer")
    func scope() async throws {
        try await withHistory { test, library in
            try await test.run("UPDATE ledger.subscription SET periods = 7")
            var one = RebuildScope(app: "com.example.app", customer: "cid")
            let found = try await rebuild(test, library, correcting: false, one)
            #expect(found.examined == 3)
            #expect(found.differences.map(\.subject) == ["com.example.app Production subscription 3000"])
            #expect(try await test.ledger.operations.rebuildable(one) == 3)
            try await test.ledger.operations.require(one)
            await #expect(throws: LedgerError(.notFound, "com.example.app has no customer nope.")) {
                try await test.ledger.operations.require(RebuildScope(app: "com.example.app", customer: "nope"))
            }
            one.app = "com.example.other"
            #expect(try await rebuild(test, library, correcting: false, one).examined == 0)
            #expect(try await test.ledger.operations.rebuildable(RebuildScope()) == 8)
        }
    }

    @Test("Settlements and a rebuild side by side come to what the observations say")
    func sideBySide() async throws {
        try await withHistory { test, library in
            let receipt = try await test.upload("e", by: "dan")
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for step in 1...20 {
                        let answer = Answer(from: test.at(-90), asOf: test.at(-80 + Double(step))).but {
                            ($0.subscription, $0.willRenew) = ("5000", step.isMultiple(of: 2))
                        }
                        try await tell(test, library, receipt, .verified(answer.evidence))
                    }
                }
                group.addTask {
                    for _ in 1...8 {
                        let beside = try await rebuild(test, library, correcting: true)
                        #expect(beside.differences == [])
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await rebuild(test, library, correcting: false).differences == [])
        }
    }
}
