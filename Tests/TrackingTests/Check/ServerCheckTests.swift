import AppStore
import Foundation
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("A check asks the Server API by the app's verifier and by what the device sent")
struct ServerCheckTests {
    private static let state = """
        SELECT r.outcome, s.attempts, r.rejections FROM ledger.receipt r LEFT JOIN ledger.poll_schedule s USING (receipt_id)
        """

    @Test(
        "The id of a transaction asks the Server API for everything; a refused key pauses its calls and is no attempt")
    func keyRefused() async throws {
        try await ServerLine.with { line in
            let receipt = try await line.pointer("2000000000000001")
            line.server.say(.keyRefused, httpStatus: 401)
            let settled = try await line.tracker.check(receipt)
            #expect(settled.outcome == .indeterminate && settled.vouching == .pointer)
            #expect(settled.reason?.contains("perennial app server-key") == true)
            let asked = try #require(line.server.asked.first)
            #expect(asked.transactionID == "2000000000000001" && asked.revision == nil && asked.isFirstSight)
            #expect(asked.askFirst == .production && line.receipts.callCount == 0)
            #expect(try await line.rows(Self.state) == ["0 0"])
            let app = try await line.served.ledger.apps.app(ServedLedger.app)
            #expect(app.pause == nil && app.pauses == [], "verifyReceipt is asked on")
            #expect(app.callPauses[.production]?.reason.contains("401") == true && app.callPauses[.sandbox] == nil)
            let held = try await line.served.ledger.operations.status().heldKeys
            #expect(held.map(\.pause.environment) == [.production], "the status says so")
            _ = try await line.tracker.check(receipt)
            #expect(line.server.asked.count == 1, "nothing is asked meanwhile")
            #expect(try await line.rows(Self.state) == ["0 0"])
            #expect(line.journal.lines.contains { $0.contains("the Server API refuses the calls") })
        }
    }

    @Test("A refused key stops only the checks of its channel and environment, until it is replaced or removed")
    func refusedWhere() async throws {
        try await ServerLine.with { line in
            let (ledger, receipt) = (line.served.ledger, try await line.pointer("1"))
            func refuse() async throws {
                line.server.say(.keyRefused, httpStatus: 401)
                _ = try await line.tracker.check(receipt)
                try await line.served.run("UPDATE ledger.poll_schedule SET due_at = now()")
            }
            func due(sandbox: Bool = false) async throws -> Int {
                try await line.served.run("UPDATE ledger.poll_schedule SET is_sandbox = \(sandbox)")
                return try await ledger.claims.due(limit: 10).reduce(0) { $0 + $1.receipts }
            }
            try await refuse()
            #expect(try await due() == 1)
            try await line.verify(by: .serverAPI)
            #expect(try await ledger.apps.app(ServedLedger.app).pauses.map(\.environment) == [.production])
            #expect(try await ledger.apps.app(ServedLedger.app).onlyEnvironment == .sandbox)
            #expect(try await ledger.apps.app(ServedLedger.app).heldKeys == [])
            #expect(try await due() == 0)
            #expect(try await due(sandbox: true) == 1)
            let because = "SELECT paused_because LIKE '%401%' AS why FROM perennial.receipt_now"
            #expect(try await line.rows(because) == [""], "the sandbox goes on")
            #expect(try await due() == 0)
            #expect(try await line.rows(because) == ["true"])
            try await line.storeKey()
            #expect(try await due() == 1, "another key ends the pause")
            try await refuse()
            #expect(try await due() == 0)
            try await line.verify(by: .verifyReceipt)
            try await ledger.apps.removeServerKey(of: ServedLedger.app)
            let app = try await ledger.apps.app(ServedLedger.app)
            #expect(app.callPauses == [:] && app.serverKey == nil)
        }
    }

    @Test("A transaction that is not known is asked about again soon, then in a day")
    func unknown() async throws {
        try await ServerLine.with { line in
            let receipt = try await line.pointer("1")
            line.server.say(.unknownTransaction(code: 4_040_010))
            let settled = try await line.tracker.check(receipt)
            #expect(settled.outcome == .rejected && settled.retry == .later)
            #expect(try await line.rows(Self.state) == ["rejected 1 1"])
            let minutes = try await line.rows(
                "SELECT round(EXTRACT(epoch FROM due_at - now()) / 60) AS m FROM ledger.poll_schedule")
            #expect(minutes == ["1"])
            line.server.say(.idRefused(code: 4_000_006))
            #expect(try await line.tracker.check(receipt).retry == .vain)
        }
    }

    @Test("Too many requests pause that kind of call, and the claims of an app that asks nothing else")
    func tooMany() async throws {
        try await ServerLine.with { line in
            let receipt = try await line.pointer("1")
            line.server.say(.noAnswer("busy", code: 4_290_000), httpStatus: 429, retryAfter: 120)
            _ = try await line.tracker.check(receipt)
            let paused = """
                SELECT environment, endpoint, round(EXTRACT(epoch FROM paused_until - now()) / 10) AS p FROM ledger.call_budget
                """
            #expect(try await line.rows(paused) == ["Production statuses 12"])
            var app = try await line.served.ledger.apps.app(ServedLedger.app)
            #expect(app.pause == nil)
            let wait = try await line.served.ledger.claims.takeCall(.statuses, of: app, in: .production)
            #expect(wait.map { (100...121).contains($0) } == true)
            #expect(try await line.served.ledger.claims.takeCall(.history, of: app, in: .production) == nil)
            try await line.verify(by: .serverAPI)
            _ = try await line.tracker.check(receipt)
            app = try await line.served.ledger.apps.app(ServedLedger.app)
            #expect(app.pauses.map(\.reason) == ["Apple asks for fewer requests"])
            #expect(app.pauses.map(\.environment) == [.production], "the sandbox goes on")
        }
    }

    @Test("verifyReceipt vouches for a receipt first; while it cannot, the id in it is a pointer")
    func vouching() async throws {
        try await ServerLine.with { line in
            try await line.verify(by: .serverAPI)
            let upload = Submission(bundleID: ServedLedger.app, customer: "kim", receipt: Sample.receipt())
            let receipt = try #require(try await line.tracker.store([upload]).first?.get()).receiptID
            line.receipts.say(nil)
            line.server.say(.unknownTransaction(code: 4_040_010))
            // Nothing is known of it but its bytes, which hold no purchases.
            #expect(try await line.tracker.check(receipt).outcome == .indeterminate)
            #expect(line.server.asked.isEmpty)
            try await line.served.run("UPDATE ledger.receipt SET transaction_id = '100'")
            let pointed = try await line.tracker.check(receipt)
            #expect(pointed.outcome == .rejected && pointed.vouching == .pointer && line.server.asked.count == 1)
            line.receipts.say(Sample.verified())
            let vouched = try await line.tracker.check(receipt)
            #expect(vouched.outcome == .verified && vouched.vouching == .vouched && line.server.asked.count == 1)
            line.server.say(.noAnswer("away", code: nil))
            _ = try await line.tracker.check(receipt)
            #expect(line.server.asked.count == 2 && line.server.asked.last?.revision == nil)
            #expect(line.server.asked.last?.isFirstSight == false)
        }
    }

    @Test("The history is read on from where it was read", arguments: ["r", nil])
    func revision(_ revision: String?) async throws {
        try await ServerLine.with { line in
            let receipt = try await line.pointer("1")
            if let revision { try await line.served.run("UPDATE ledger.receipt SET history_revision = '\(revision)'") }
            _ = try await line.tracker.check(receipt)
            #expect(line.server.asked.map(\.revision) == [revision])
        }
    }

    /// Has the Server API say a status of a monthly subscription whose trial ended three days before `now`.
    private func say(
        _ status: Int, _ more: String = "", plan: String? = nil, withRenewal: Bool = true, history: Bool, now: Int64,
        on line: ServerLine
    ) throws {
        func text(_ claims: String) -> String {
            let base64 = Data(claims.utf8).base64EncodedString()
            return
                "e30.\(base64.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")).c2ln"
        }
        let signed = now + Int64(line.server.asked.count) * 1_000
        let transaction = text(
            """
            {"transactionId":"505000100","originalTransactionId":"505000100","webOrderLineItemId":"505000190",
             "productId":"monthly","bundleId":"com.example.app","environment":"Production","offerType":1,
             "offerDiscountType":"FREE_TRIAL","price":0,"currency":"EUR","type":"Auto-Renewable Subscription",
             "purchaseDate":\(now - 10 * 86_400_000),"expiresDate":\(now - 3 * 86_400_000),"quantity":1,
             \(plan.map { "\"billingPlanType\":\"\($0)\"," } ?? "")"signedDate":\(signed)}
            """)
        let renewal = text(
            """
            {"originalTransactionId":"505000100","productId":"monthly","autoRenewProductId":"monthly",
             "autoRenewStatus":1,"isInBillingRetryPeriod":true,"expirationIntent":2,"environment":"Production",
             "renewalDate":\(now - 3 * 86_400_000),\(more)"signedDate":\(signed)}
            """)
        let pages =
            history
            ? #","history":[{"revision":"r","hasMore":false,"signedTransactions":["\#(transaction)"]}]"# : ""
        try line.server.say(
            """
            {"asked":"505000100","environment":"Production","statuses":{"data":[{"lastTransactions":[
              {"originalTransactionId":"505000100","signedTransactionInfo":"\(transaction)",
               \(withRenewal ? "\"signedRenewalInfo\":\"\(renewal)\"," : "")"status":\(status)}]}]}\(pages)}
            """)
    }

    /// Has verifyReceipt state the same subscription, whose failed payment is tried again.
    private func sayReceipt(now: Int64, on line: ServerLine) {
        let (bought, ended) = (now - 10 * 86_400_000, now - 3 * 86_400_000)
        line.receipts.say(
            """
            {"status":0,"environment":"Production",
             "receipt":{"bundle_id":"com.example.app","request_date_ms":"\(now - 500 + Int64(line.server.asked.count) * 1_000)",
              "receipt_creation_date_ms":"\(now - 1_000 + Int64(line.receipts.callCount))","in_app":[]},
             "latest_receipt_info":[{"product_id":"monthly","quantity":"1","transaction_id":"505000100",
              "original_transaction_id":"505000100","web_order_line_item_id":"505000190",
              "purchase_date_ms":"\(bought)","original_purchase_date_ms":"\(bought)","expires_date_ms":"\(ended)",
              "is_trial_period":"true","is_in_intro_offer_period":"false"}],
             "pending_renewal_info":[{"original_transaction_id":"505000100","product_id":"monthly",
              "auto_renew_product_id":"monthly","auto_renew_status":"1","expiration_intent":"2",
              "is_in_billing_retry_period":"1"}]}
            """)
    }

    @Test(
        "The Server API is asked soon after verifyReceipt vouched, and its status stands against what verifyReceipt lacks"
    )
    func graceBesideReceipts() async throws {
        try await ServerLine.with { line in
            try await line.verify(by: .serverAPI)
            let now = try await line.served.ledger.now().milliseconds
            func check(_ number: Int) async throws -> Verdict {
                let upload = Submission(
                    bundleID: ServedLedger.app, customer: "kim", receipt: Sample.receipt(number))
                let receipt = try #require(try await line.tracker.store([upload]).first?.get()).receiptID
                sayReceipt(now: now, on: line)
                return try #require(try await line.tracker.check(receipt).subscriptions.first).verdict
            }
            let due = """
                SELECT DISTINCT round(EXTRACT(epoch FROM due_at - now()) / 3600, 1) AS h FROM ledger.poll_schedule
                """
            try say(4, history: true, now: now, on: line)
            #expect(try await check(0).state == .billingRetry)
            #expect(try await line.rows(due) == ["0.0"] && line.server.asked.isEmpty)
            #expect(try await check(0).state == .gracePeriod)
            #expect(try await line.rows(due) == ["6.0"] && line.server.asked.count == 1 && line.receipts.callCount == 1)
            let other = try await check(1)
            #expect(other.state == .gracePeriod && other.entitled && line.receipts.callCount == 2)
            #expect(other.because.last?.path.hasSuffix("statuses.data[0].lastTransactions[0].status") == true)
            #expect(try await line.rows(due) == ["6.0"], "what is known already needs no other answer at once")
            let events = try await line.rows("SELECT kind FROM ledger.event WHERE kind::text LIKE 'billing%'")
            #expect(events == ["billing.grace_entered"])
        }
    }

    @Test(
        "A receipt that is a pointer because the secret was refused is vouched for once there is another secret",
        arguments: [false, true])
    func pointerUntilRotated(whilePaused: Bool) async throws {
        try await ServerLine.with { line in
            try await line.verify(by: .serverAPI)
            let now = try await line.served.ledger.now().milliseconds
            let upload = Submission(bundleID: ServedLedger.app, customer: "kim", receipt: Sample.receipt())
            let receipt = try #require(try await line.tracker.store([upload]).first?.get()).receiptID
            try await line.served.run("UPDATE ledger.receipt SET transaction_id = '505000100'")
            try say(4, history: true, now: now, on: line)
            line.receipts.say(#"{"status":21004}"#)
            let pointed = try await line.tracker.check(receipt)
            #expect(pointed.outcome == .verified && pointed.vouching == .pointer)
            let minutes = """
                SELECT LEAST(60, GREATEST(0, round(EXTRACT(epoch FROM due_at - now()) / 60))) AS m FROM ledger.poll_schedule
                """
            #expect(try await line.rows(minutes) == ["60"], "it waits for its next check")
            if whilePaused {
                try await line.served.run(
                    """
                    INSERT INTO ledger.secret_trial (app_id, environment, proved_at, paused_since)
                    SELECT app_id, 'Production', now(), now() FROM ledger.app
                    ON CONFLICT (app_id, environment) DO UPDATE SET paused_since = now()
                    """)
            }
            try await line.served.ledger.apps.rotateSecret(of: ServedLedger.app, to: "right")
            // The trial, which ends the pause, comes first.
            #expect(try await line.rows(minutes) == [whilePaused ? "1" : "0"])
            guard !whilePaused else { return }
            sayReceipt(now: now, on: line)
            let vouched = try await line.tracker.check(receipt)
            #expect(vouched.outcome == .verified && vouched.vouching == .vouched)
        }
    }

    @Test("A status without renewal information counts by itself")
    func statusAlone() async throws {
        try await ServerLine.with { line in
            let receipt = try await line.pointer("505000100")
            let now = try await line.served.ledger.now().milliseconds
            for (status, state) in [(4, State.gracePeriod), (3, .billingRetry), (4, .gracePeriod), (2, .expired)] {
                try say(status, withRenewal: false, history: true, now: now, on: line)
                let verdict = try #require(try await line.tracker.check(receipt).subscriptions.first).verdict
                #expect(verdict.state == state && verdict.entitled == (status == 4))
            }
        }
    }

    @Test(
        "Status 4 without a date of the end of grace keeps access, is asked about every six hours, and ends with another",
        arguments: [true, false])
    func graceWithoutADate(withHistory: Bool) async throws {
        try await ServerLine.with { line in
            let receipt = try await line.pointer("505000100")
            let now = try await line.served.ledger.now().milliseconds
            func say(_ status: Int, _ more: String = "", plan: String? = nil, history: Bool? = nil) throws {
                try self.say(status, more, plan: plan, history: history ?? withHistory, now: now, on: line)
            }
            func check() async throws -> Verdict {
                try #require(try await line.tracker.check(receipt).subscriptions.first).verdict
            }
            try say(4, history: true)
            var verdict = try await check()
            #expect(verdict.state == .gracePeriod && verdict.entitled)
            #expect(verdict.entitledUntil == Instant(milliseconds: now + 25 * 86_400_000), "28 days after the end")
            #expect(verdict.because.last?.path == "statuses.data[0].lastTransactions[0].status")
            let hours = try await line.rows(
                "SELECT round(EXTRACT(epoch FROM due_at - now()) / 3600) AS h FROM ledger.poll_schedule")
            #expect(hours == ["6"])
            try say(4)
            verdict = try await check()
            #expect(verdict.state == .gracePeriod, "also where only the statuses are read")
            try say(3)
            verdict = try await check()
            #expect(verdict.state == .billingRetry && !verdict.entitled)
            try say(4, plan: "MONTHLY")
            #expect(try await check().state == .billingRetry, "a plan that is paid monthly has no grace")
            try say(4, #""gracePeriodExpiresDate":\#(now + 86_400_000),"#)
            #expect(try await check().entitledUntil == Instant(milliseconds: now + 86_400_000), "a date wins")
            let events = try await line.rows("SELECT kind FROM ledger.event ORDER BY version, ordinal")
            #expect(events.filter { $0.hasPrefix("billing") }.count == 2, "\(events)")
        }
    }

    @Test("Without a server key an upload without a receipt is refused, and the sentence says what to do")
    func noKey() async throws {
        try await ServerLine.with { line in
            try await line.served.ledger.apps.removeServerKey(of: ServedLedger.app)
            for subject in [Submission.Subject.transactionID("1"), .signedTransaction("a.b.c")] {
                let error = await #expect(throws: LedgerError.self) {
                    _ = try await line.tracker.submit(
                        Submission(bundleID: ServedLedger.app, customer: "kim", subject: subject))
                }
                #expect(error?.message.contains("perennial app server-key --app com.example.app") == true)
            }
            let error = await #expect(throws: LedgerError.self) { try await line.verify(by: .serverAPI) }
            #expect(error?.kind == .invalid)
        }
    }

    @Test("A missing key and a fault of the Server API are two failures, and a key ends the first")
    func failures() async throws {
        try await ServerLine.with { line in
            let receipt = try await line.pointer("1")
            try await line.served.ledger.apps.removeServerKey(of: ServedLedger.app)
            for _ in 0..<2 { _ = try await line.tracker.check(receipt) }
            try await line.storeKey()
            for _ in 0..<2 { _ = try await line.tracker.check(receipt) }
            let failures = line.journal.lines.compactMap { text in
                ["server_key", "server_api"].first { text.contains("\"condition\": \($0)") }
                    .map { "\(text.prefix { $0 != " " }) \($0)" }
            }
            #expect(failures == ["error server_key", "info server_key", "error server_api"])
        }
    }

    @Test("What is no signed transaction of Apple's is refused before anything is stored")
    func forged() async throws {
        try await ServerLine.with { line in
            for text in ["", "a.b.c", "eyJhbGciOiJFUzI1NiJ9.e30.AAAA"] {
                await #expect(throws: UploadRefusal.self) {
                    _ = try await line.tracker.submit(
                        Submission(bundleID: ServedLedger.app, customer: "kim", subject: .signedTransaction(text)))
                }
            }
            for id in ["", "1 2", "é", String(repeating: "1", count: 65)] {
                await #expect(throws: LedgerError.self) { _ = try await line.pointer(id) }
            }
            let stored = try await line.rows("SELECT receipt_id FROM ledger.receipt")
            #expect(stored.isEmpty)
        }
    }
}
