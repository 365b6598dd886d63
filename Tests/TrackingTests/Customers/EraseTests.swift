import Foundation
import Postgres
import TestSupport
import Testing

@testable import Subscriptions
@testable import Tracking

@Suite("An erasure leaves nothing personal and keeps all figures")
struct EraseTests {
    static let token = "6f1e5a9c-0000-4000-8000-0123456789ab"
    static let decision = try? ManualDecision(by: "kim", because: "asked to be forgotten")

    @discardableResult
    private func erase(_ customer: String, in test: TestLedger) async throws -> CustomerErasure {
        try await test.ledger.customers.erase(customer, of: test.app.bundleID, deciding: try #require(Self.decision))
    }

    private func monthly(_ test: TestLedger, asOf: Double = -1) -> Answer {
        Answer(from: test.at(-9), asOf: test.at(asOf)).but { $0.token = Self.token }
    }

    /// Settles an answer whose body and newest receipt hold texts that the erasure must remove.
    private func check(_ receipt: ReceiptID, _ finding: Finding, in test: TestLedger) async throws {
        let settlement = Settlement(
            claim: try await test.claim(receipt), finding: finding,
            body: Array(#"{"secret-body": "\#(Self.token)"}"#.utf8), latestReceipt: Array("newest-bytes-of-ann".utf8))
        let settled = try await test.ledger.settlements.settleInFull([settlement])
        #expect(settled.failures.map(\.reason) == [])
    }

    /// A customer of whom everything is kept that can be, with another name and a token on every fact.
    private func arrange(_ test: TestLedger) async throws {
        let ledger = test.ledger.acting(as: .user("kim"))
        let upload = Upload(
            appID: test.app.id, customer: "ann-of-the-dump", receipt: Array("bytes-of-ann".utf8), imported: false,
            storefront: "DEU", priceMilliunits: 4990, currency: "EUR")
        let receipt = try #require(try await ledger.intake.store([upload]).first).receiptID
        try await check(receipt, .verified(monthly(test, asOf: -3).evidence), in: test)
        try await check(receipt, .verified(monthly(test).but { $0.refunded = (0, test.at(-2)) }.evidence), in: test)
        let coins = try await test.upload("coins-of-ann", by: "anon-of-the-dump")
        var bought = Answer(from: test.at(-4), periods: 0, asOf: test.at(-1)).evidence
        bought.transactions = [
            TransactionRow(
                path: "latest_receipt_info[0]", source: .latestReceiptInfo, asOf: test.at(-1), transactionID: "c",
                originalTransactionID: "c", productID: "coins", purchasedAt: test.at(-4))
        ]
        bought.transactions[0].appAccountToken = Self.token
        try await check(coins, .verified(bought), in: test)
        try await ProvisionalTests.say(30, of: "gold", receipt: "promised-to-ann", by: "ann-of-the-dump", in: test)
        try await ManualGrantTests.give(30, of: "pro", to: "ann-of-the-dump", in: test)
        let app = test.app.bundleID
        func because(_ reason: String) throws -> ManualDecision { try ManualDecision(by: "kim", because: reason) }
        _ = try await ledger.customers.merge(
            "anon-of-the-dump", into: "ann-of-the-dump", of: app, deciding: because("a reason to merge ann"))
        // These decisions about another customer are about ann too: an assignment, and a merge that was undone.
        _ = try await ledger.customers.assign("c", to: "bob", of: app, deciding: because("a reason to take from ann"))
        _ = try await ledger.customers.assign(
            "c", to: "ann-of-the-dump", of: app, deciding: because("a reason to give to ann"))
        _ = try await ledger.customers.merge(
            "bob", into: "ann-of-the-dump", of: app, deciding: because("a reason to mix up ann"))
        _ = try await ledger.customers.split("bob", of: app, deciding: because("a reason to tell ann apart"))
        try await test.ledger.feed.sequence()
        try await test.run(
            """
            INSERT INTO ledger.notification
                (app_id, received_at, version, kind, environment, original_transaction_id, effect, body)
            VALUES (\(test.app.id), now(), 2, 'REFUND', 'Production', '1000', 'unknown', '{"asked": "asked-of-ann"}');
            INSERT INTO ledger.unread_claim (app_id, name, is_unreadable, texts, example, original_transaction_id)
            VALUES (\(test.app.id), 'transaction.new', false, 1, 'example-of-ann', '1000');
            INSERT INTO ledger.support_call (app_id, environment, kind, subject, request)
            VALUES (\(test.app.id), 'Production', 'extend', '1000', '{"asked": "extended-for-ann"}'),
                (\(test.app.id), 'Production', 'consumption', 'c', '{"asked": "used-by-ann"}')
            """)
    }

    private func figures(_ test: TestLedger) async throws -> [[String]] {
        [
            try await test.rows("SELECT count(*), min(recorded_at) FROM ledger.event"),
            try await test.rows("SELECT kind, product_id, occurred_at FROM perennial.event_log ORDER BY position"),
            try await test.rows(
                """
                SELECT kind, product_id, purchased_at, cancelled_at, amount_milliunits, currency, price_basis
                FROM perennial.charges_as_known('infinity') ORDER BY kind, purchased_at
                """),
            try await test.rows(
                "SELECT state, valid_from, valid_until FROM perennial.timeline ORDER BY 2, 3, known_from"),
            try await test.rows("SELECT count(*) FROM perennial.stated_price"),
            try await test.rows("SELECT state, entitled, periods FROM perennial.subscription_now"),
        ]
    }

    @Test("The dump holds neither names, receipts, answers nor tokens, and every figure is as before")
    func dump() async throws {
        try await withLedger { test in
            try await arrange(test)
            let traces = [
                "ann-of-the-dump", "anon-of-the-dump", "an outage", "secret-body", "asked-of-ann", Self.token,
                "to merge ann", "to take from ann", "to give to ann", "to mix up ann", "to tell ann apart",
                hex("bytes-of-ann"), hex("coins-of-ann"), hex("promised-to-ann"), hex("newest-bytes-of-ann"),
                hex("secret-body"), "extended-for-ann", "used-by-ann", "example-of-ann",
            ]
            let before = try await test.dumped()
            for trace in traces where trace != "secret-body" {
                #expect(before.contains(trace), "\(trace) was never stored, so that it proves nothing")
            }
            let figures = try await figures(test)
            let erasure = try await test.ledger.acting(as: .user("kim")).customers.erase(
                "ann-of-the-dump", of: test.app.bundleID, deciding: try #require(Self.decision))
            #expect(erasure.receipts == 3 && erasure.sharedReceipts == 0 && erasure.things == 2)
            #expect(erasure.pseudonym.hasPrefix("erased-") && erasure.pseudonym.count == 39)
            let after = try await test.dumped()
            for trace in traces { #expect(!after.contains(trace), "\(trace) is left") }
            #expect(try await self.figures(test) == figures)
            #expect(try await test.text("SELECT count(*) FROM ledger.poll_schedule") == "0")
            try await test.expectRows("SELECT next_check_at, polled_by FROM ledger.subscription", [[nil, nil]])
            #expect(
                try await test.text("SELECT customer FROM perennial.audit_log WHERE action = 'customer.erased'")
                    == erasure.pseudonym)
            #expect(
                try await test.ledger.customers.entitlements(app: test.app.bundleID, customer: "ann-of-the-dump")
                    .isEmpty)
            #expect(
                try await test.database.cells(
                    "SELECT action, detail ->> 'decided_by', detail ->> 'reason' FROM perennial.audit_log WHERE decided_about <> '{bob}'"
                ).last == ["customer.erased", "kim", "asked to be forgotten"])
            try await test.expectSound()
        }
    }

    @Test(
        "The reason of a grant is removed also after an undone merge; the reason of an erasure goes with the next one"
    )
    func reasonsElsewhere() async throws {
        try await withLedger { test in
            let (ledger, app) = (test.ledger.acting(as: .user("kim")), test.app.bundleID)
            let decision = try ManualDecision(by: "kim", because: "of ann alone")
            for (name, why) in [("ann", "asked by ann"), ("bob", "asked by bob")] {
                _ = try await ledger.customers.grant(
                    "pro of \(name)", to: name, of: app, until: nil, deciding: ManualDecision(by: "kim", because: why))
            }
            _ = try await ledger.customers.merge("ann", into: "bob", of: app, deciding: decision)
            _ = try await ledger.customers.split("ann", of: app, deciding: decision)
            let held = "SELECT entitlement, reason FROM perennial.manual_grant_log WHERE customer = 'bob' ORDER BY 1"
            try await test.expectRows(held, [["pro of ann", "asked by ann"], ["pro of bob", "asked by bob"]])
            let pseudonym = try await ledger.customers.erase("ann", of: app, deciding: decision).pseudonym
            try await test.expectRows(held, [["pro of ann", "erased"], ["pro of bob", "asked by bob"]])
            let reasons = "SELECT action FROM perennial.audit_log WHERE detail ->> 'reason' = 'of ann alone' ORDER BY 1"
            #expect(try await test.rows(reasons) == ["customer.erased"])
            _ = try await ledger.customers.erase(
                pseudonym, of: app, deciding: ManualDecision(by: "kim", because: "its reason said too much"))
            #expect(try await test.rows(reasons) == [])
            #expect(try await test.dumped().contains("of ann alone") == false)
        }
    }

    @Test("An erased customer who comes back is new, under every policy", arguments: OwnershipPolicy.allCases)
    func again(policy: OwnershipPolicy) async throws {
        try await withLedger(policy: policy) { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, monthly(test, asOf: -3))
            try await erase("ann", in: test)
            #expect(try await test.owner() == "-")
            let nothing: [Cell] = [false, nil, nil, nil, nil, "none"]
            #expect(try await test.entitled() == nothing)
            let again = try await test.upload("a")
            #expect(again != receipt)
            try await test.check(again, monthly(test))
            #expect(try await test.owner() == "ann")
            #expect(try await test.entitled() == [true, "monthly", "active", nil, "Production", "verified"])
            #expect(try await test.entitled(at: test.at(-2)) == nothing, "what was before was another customer's")
            #expect(
                try await test.events() == [
                    [1, 0, "subscription.started"], [2, 0, "ownership.assigned"], [4, 0, "ownership.assigned"],
                ])
            #expect(
                try await test.text(
                    "SELECT count(*) FROM ledger.subscription s JOIN ledger.receipt r ON r.receipt_id = s.polled_by WHERE r.erased_at IS NULL AND s.next_check_at IS NOT NULL"
                ) == "1")
        }
    }

    @Test("No later answer or notification brings an account token back, until the customer is back too")
    func tokens() async throws {
        try await withLedger { test in
            let token = try await test.ledger.apps.openNotifications(of: test.app.bundleID)
            let app = try #require(try await test.ledger.apps.notifiedApp(at: token))
            let ours = try await test.upload("ours", by: "bob")
            try await test.upload("mine", by: Self.token)
            try await test.check(ours, monthly(test, asOf: -4))
            #expect(try await test.owner() == Self.token)
            try await erase(Self.token, in: test)
            #expect(try await test.dumped().contains(Self.token) == false)
            try await check(ours, .verified(monthly(test, asOf: -3).evidence), in: test)
            #expect(try await test.owner() == "bob", "the token names nobody")
            for (number, subject) in [("1", "1000"), ("2", "9000")] {
                let notification = VerifiedNotification(
                    kind: "REFUND", subkind: nil, appleID: number, environment: .production,
                    originalTransactionID: OriginalTransactionID(subject), transactionID: TransactionID(subject),
                    accountToken: Self.token.uppercased(), signedAt: test.at(-1), texts: Array("text-of-ann".utf8),
                    holdsFacts: true)
                let effect = try await test.ledger.intake.keep(notification, for: app)
                #expect(effect == (subject == "1000" ? .asked : .noFacts), "\(subject)")
            }
            let after = try await test.dumped()
            for trace in [Self.token, hex("text-of-ann"), hex(Self.token), "secret-body", hex("secret-body")] {
                #expect(!after.contains(trace), "\(trace) is back")
            }
            #expect(try await test.violations() == [])
            try await test.upload("again", by: Self.token)
            try await check(ours, .verified(monthly(test, asOf: -2).evidence), in: test)
            #expect(
                try await test.text("SELECT app_account_token FROM ledger.subscription") == Self.token,
                "it names a customer again")
        }
    }

    @Test("A receipt that a notification made goes with the only customer who owns what it holds")
    func ownerless() async throws {
        try await withLedger { test in
            let first = Answer(from: test.at(-9), asOf: test.at(-3))
            try await test.check(try await test.upload("a"), first)
            let upload = Upload(
                appID: test.app.id, customer: nil, receipt: Array("2000".utf8), imported: false, form: .transactionID,
                transactionID: "2000")
            let pointed = try #require(try await test.ledger.intake.store([upload]).first).receiptID
            let second = first.but { ($0.subscription, $0.product, $0.asOf) = ("2000", "plus", test.at(-2)) }
            try await test.check(
                pointed, together([first.but { $0.asOf = test.at(-2) }, second]), server: Showing.transactionID.read)
            #expect(try await test.owner(of: "2000") == "ann")
            #expect(try await erase("ann", in: test).receipts == 2)
            #expect(try await test.rows("SELECT receipt_id FROM ledger.poll_schedule") == [])
            #expect(try await test.violations() == [])
        }
    }

    @Test("A receipt that another customer uploaded too stays, and polls on")
    func shared() async throws {
        try await withLedger { test in
            let mine = try await test.upload("mine", by: "ann")
            try await test.check(mine, monthly(test, asOf: -4).but { $0.createdAt = test.at(-5) })
            let ours = try await test.upload("ours", by: "bob")
            try await test.upload("ours", by: "ann")
            try await test.check(ours, monthly(test, asOf: -3).but { $0.createdAt = test.at(-6) })
            let erasure = try await erase("ann", in: test)
            #expect(erasure.receipts == 1 && erasure.sharedReceipts == 1)
            try await test.expectRows(
                "SELECT polled_by, next_check_at IS NOT NULL FROM ledger.subscription", [[.receipt(ours), true]])
            #expect(
                try await test.rows("SELECT receipt_id FROM ledger.poll_schedule") == ["\(ours)"])
            try await test.check(ours, monthly(test))
            #expect(try await test.owner() == "bob", "who still has the receipt is served")
        }
    }

    @Test("An erasure is refused during a check; an erased receipt is not checked again")
    func leased() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let claim = try await test.claim(receipt)
            let busy = await #expect(throws: LedgerError.self) { try await erase("ann", in: test) }
            #expect(busy?.kind == .busy)
            #expect(try await test.text("SELECT name FROM ledger.customer") == "ann")
            try await test.settle(claim, .verified(monthly(test).evidence))
            try await erase("ann", in: test)
            await #expect(throws: LedgerError.self) { try await test.claim(receipt) }
            let unknown = await #expect(throws: LedgerError.self) { try await erase("ann", in: test) }
            #expect(unknown?.kind == .notFound)
        }
    }

    /// The worker that asked was thought dead: its lease ran out, the customer was erased, and then its answer came.
    @Test("An answer that comes after the erasure brings nothing back", arguments: [true, false])
    func lateAnswer(wasVerifiedBefore: Bool) async throws {
        try await withLedger { test in
            try await test.upload("other", by: "bob")
            let receipt = try await test.upload("a")
            if wasVerifiedBefore { try await check(receipt, .verified(monthly(test, asOf: -3).evidence), in: test) }
            let claim = try await test.claim(receipt)
            try await test.run(
                "UPDATE ledger.poll_schedule SET due_at = now() - interval '1 s' WHERE leased_by IS NOT NULL")
            try await erase("ann", in: test)
            let everything = try await test.everything()
            let late = Settlement(
                claim: claim, finding: .verified(monthly(test).evidence),
                body: Array(#"{"secret-body": "\#(Self.token)"}"#.utf8), latestReceipt: Array("newest-bytes".utf8))
            let settled = try await test.ledger.settlements.settleInFull([late])
            #expect(settled.settled.isEmpty && settled.failures.isEmpty)
            #expect(try await test.everything() == everything)
            let dump = try await test.dumped()
            for trace in [Self.token, "secret-body", hex("secret-body"), hex("newest-bytes")] {
                #expect(!dump.contains(trace), "\(trace) came back")
            }
        }
    }

    /// Both at once, in whichever order they meet: the answer is erased with the rest, or comes too late.
    @Test("An answer and the erasure at the same time leave nothing")
    func answerMeanwhile() async throws {
        try await withLedger(connections: 4) { test in
            for round in 0..<12 {
                let receipt = try await test.upload("r\(round)")
                let claim = try await test.claim(receipt)
                try await test.run("UPDATE ledger.poll_schedule SET due_at = now() - interval '1 s'")
                let answer = monthly(test).but { $0.subscription = OriginalTransactionID("s\(round)") }
                let settlement = Settlement(
                    claim: claim, finding: .verified(answer.evidence), body: Array("secret-body".utf8),
                    latestReceipt: Array("newest-bytes".utf8))
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask {
                        let settled = try await test.ledger.settlements.settleInFull(
                            [settlement])
                        #expect(settled.failures.map(\.reason) == [])
                    }
                    group.addTask { try await erase("ann", in: test) }
                    try await group.waitForAll()
                }
                #expect(
                    try await test.rows(
                        "SELECT 1 FROM ledger.observation WHERE body IS NOT NULL UNION SELECT 2 FROM ledger.receipt WHERE latest_receipt IS NOT NULL"
                    ) == [], "round \(round)")
                #expect(try await test.text("SELECT count(*) FROM ledger.poll_schedule") == "0", "round \(round)")
            }
        }
    }
}
