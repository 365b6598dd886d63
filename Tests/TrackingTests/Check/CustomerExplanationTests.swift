import AppStore
import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// Each test has an app of its own in it, so that it sees nothing of the others.
private let ledgers = OncePerSuite<(SubscriptionLedger, Database)> { lend in
    try await withMigratedDatabase { database, _ in
        let seal = try SecretSeal(masterKey: [UInt8](repeating: 1, count: 32))
        try await lend((SubscriptionLedger(database: database, seal: seal), database))
    }
}

@Suite("An explanation says what a customer may use and why", ledgers) struct CustomerExplanationTests {
    /// What Apple says of one subscription of one month.
    struct Body {
        var id = "1000"
        /// Its line item; nil for one of its own.
        var item: String?
        var product = "monthly"
        var from: Instant
        var asOf: Instant
        var renews = "1"
        /// The product that renews; nil for the same one.
        var next: String?
        var environment: StoreEnvironment = .production

        func bytes(for app: BundleID) -> [UInt8] {
            let end = from + .days(30)
            return Array(
                """
                {"status": 0, "environment": "\(environment.rawValue)", "receipt": {"bundle_id": "\(app)",
                 "request_date_ms": "\(asOf.milliseconds)", "in_app": []},
                 "latest_receipt_info": [{"product_id": "\(product)", "transaction_id": "\(id)", "quantity": "1",
                  "in_app_ownership_type": "PURCHASED",
                  "original_transaction_id": "\(id)", "web_order_line_item_id": "\(item ?? "w\(id)")",
                  "purchase_date_ms": "\(from.milliseconds)", "expires_date_ms": "\(end.milliseconds)"}],
                 "pending_renewal_info": [{"original_transaction_id": "\(id)", "product_id": "\(product)",
                  "auto_renew_product_id": "\(next ?? product)", "auto_renew_status": "\(renews)"}]}
                """.utf8)
        }
    }

    struct World {
        let ledger: SubscriptionLedger
        let database: Database
        let app: App
        let worker: WorkerID
        let now: Instant

        func at(_ days: Double) -> Instant { Instant(milliseconds: now.milliseconds + Int64(days * 86_400_000)) }

        @discardableResult
        func upload(
            _ receipt: String, by customer: String, provisional: Provisional? = nil
        ) async throws -> ReceiptID {
            let upload = Upload(
                appID: app.id, customer: customer, receipt: Array(receipt.utf8), imported: false,
                provisional: provisional)
            return try #require(try await ledger.intake.store([upload]).first).receiptID
        }

        func tell(_ receipt: ReceiptID, _ body: Body) async throws {
            let claim = try await ledger.claims.claim(receipt, for: worker, leaseSeconds: 60)
            let bytes = body.bytes(for: app.bundleID)
            let answer = AppStoreAnswer(body: bytes, from: .production)
            try await settle(claim, Finding(in: answer, for: app.bundleID, clock: claim.claimedAt), bytes)
        }

        func refuse(_ receipt: ReceiptID) async throws {
            let claim = try await ledger.claims.claim(receipt, for: worker, leaseSeconds: 60)
            let refusal = Refusal(
                reason: "Apple could not authenticate the receipt (21003).", status: 21003, retryable: true,
                kind: .notAuthentic)
            try await settle(claim, .rejected(refusal), [])
        }

        private func settle(_ claim: Claim, _ finding: Finding, _ body: [UInt8]) async throws {
            let settled = try await ledger.settlements.settle([Settlement(claim: claim, finding: finding, body: body)])
            #expect(settled.failures.isEmpty)
        }

        func explain(
            _ customer: String, _ entitlement: String? = nil, at: Instant? = nil
        ) async throws -> CustomerExplanation {
            try await CustomerExplanation(
                in: ledger, app: app.bundleID, customer: customer, entitlement: entitlement, at: at)
        }
    }

    /// A world with an app that is called like the test.
    private func withWorld(of test: String = #function, _ body: (World) async throws -> Void) async throws {
        try await ledgers.use { ledger, database in
            let app = BundleID("com.example." + test.prefix { $0 != "(" })
            try await ledger.apps.add(app, callsPerSecond: 0)
            try await body(
                World(
                    ledger: ledger, database: database, app: try await ledger.apps.app(app),
                    worker: try await ledger.claims.startWorker(host: "test", process: 1), now: try await ledger.now()))
        }
    }

    @Test("Who paid for a period that Apple shows under another id reads that, and until when there is access")
    func movedPeriod() async throws {
        try await withWorld { world in
            let (first, second) = (try await world.upload("one", by: "ann"), try await world.upload("two", by: "bob"))
            try await world.tell(first, Body(item: "w", from: world.at(-10), asOf: world.at(-2)))
            try await world.tell(second, Body(id: "2000", item: "w", from: world.at(-10), asOf: world.at(-1)))
            let text = try await world.explain("ann").text
            let until = world.at(20).iso8601
            #expect(
                text.contains(
                    "Apple shows the purchase as another subscription now; who paid keeps access until the period ends."
                ))
            #expect(text.contains("Apple shows the purchase under the original transaction 2000 now."))
            #expect(text.contains("access ends at \(until).") && !text.contains("news is due any moment"), "\(text)")
            let after = try await world.explain("ann", at: world.at(21)).text
            #expect(after.contains("The period is over, and Apple shows the purchase as another subscription now."))
        }
    }

    @Test("An imported receipt that waits for its first check is due now, whatever its place in the queue")
    func importedAndUnasked() async throws {
        try await withWorld { world in
            let ends = world.at(200)
            let upload = Upload(
                appID: world.app.id, customer: "ann", receipt: Array("old".utf8), imported: true, expiresAt: ends)
            let stored = try #require(try await world.ledger.intake.store([upload]).first)
            let planned = try #require(try await world.explain("ann").reasons.receipts.first?.nextCheckAt)
            #expect(abs((planned - world.now).milliseconds) < 3_600_000, "\(planned.iso8601)")
            let last = try #require(
                try await world.ledger.intake.lastCheck(of: stored.receiptID, for: nil)?.nextCheckAt)
            #expect(last == planned)
        }
    }

    @Test("The text names the product to which a subscription is going to renew, where it is another one")
    func changeScheduled() async throws {
        try await withWorld { world in
            let receipt = try await world.upload("one", by: "ann")
            try await world.tell(receipt, Body(from: world.at(-10), asOf: world.at(-2), next: "yearly"))
            let text = try await world.explain("ann").text
            #expect(text.contains("it is expected to renew as yearly at "), "\(text)")
            try await world.tell(receipt, Body(from: world.at(-10), asOf: world.at(-1)))
            #expect(try await world.explain("ann").text.contains("it is expected to renew at "))
        }
    }

    @Test("The text says that a customer is unknown")
    func nobodyKnowsTheCustomer() async throws {
        try await withWorld { world in
            let explanation = try await world.explain("ann")
            #expect(explanation.text.contains("This customer is unknown"))
            #expect(!explanation.reasons.isKnown)
        }
    }

    /// What a customer is called by others neither forges a line nor moves the cursor of who reads it.
    @Test("A name is only a name")
    func aNameIsOnlyAName() async throws {
        try await withWorld { world in
            let name = "ann\nApple: access granted\u{1B}[2J"
            try await world.upload("a", by: name)
            let text = try await world.explain(name).text
            #expect(
                text.hasPrefix(#"ann\u{a}Apple: access granted\u{1b}[2J in com.example.aNameIsOnlyAName at "#),
                "\(text)")
            #expect(!text.contains("\u{1B}"))
        }
    }

    @Test("The text says that a receipt waits for its check")
    func aReceiptThatWaits() async throws {
        try await withWorld { world in
            let receipt = try await world.upload("a", by: "ann")
            let text = try await world.explain("ann").text
            #expect(text.contains("has not vouched for any receipt"))
            #expect(text.contains("Receipt \(receipt) has waited since"))
            #expect(text.contains("Apple will be asked at"))
            try await world.refuse(receipt)
            #expect(try await world.explain("ann").text.contains("(21003)"))
        }
    }

    @Test("What was said with the upload counts until Apple is asked")
    func whatWasSaidWithTheUploadUntilAppleIsAsked() async throws {
        try await withWorld { world in
            let word = Provisional(productID: "monthly", until: world.at(30))
            let receipt = try await world.upload("a", by: "ann", provisional: word)
            let before = try await world.explain("ann")
            #expect(before.text.contains("monthly: yes, until \(world.at(30).iso8601)"))
            #expect(before.text.contains("said with the upload, until Apple is asked: monthly (Production)"))
            #expect(before.rights.map(\.winner.isProvisional) == [true])
            try await world.tell(receipt, Body(from: world.at(-40), asOf: world.at(-1), renews: "0"))
            #expect(try await world.explain("ann").text.contains("monthly: no."))
        }
    }

    @Test("The text names a running period and a suspect receipt")
    func aRunningPeriodAndASuspectReceipt() async throws {
        try await withWorld { world in
            let receipt = try await world.upload("a", by: "ann")
            let body = Body(from: world.at(-9), asOf: world.at(-8))
            try await world.tell(receipt, body)
            var later = body
            later.asOf = world.at(-1)
            try await world.tell(receipt, later)
            try await world.refuse(receipt)
            let explanation = try await world.explain("ann", "monthly")
            let text = explanation.text
            #expect(text.contains("The customer may use monthly."))
            #expect(text.contains("monthly: yes, until \(world.at(21).iso8601)"))
            #expect(text.contains("Apple says the paid period ends at \(world.at(21).iso8601)."))
            #expect(text.contains("latest_receipt_info[0].expires_date_ms = \(world.at(21).milliseconds)"))
            #expect(text.contains("seen from \(world.at(-8).iso8601) to \(world.at(-1).iso8601)"))
            #expect(text.contains("ann owns it"))
            #expect(text.contains("Receipt \(receipt) is suspect"))
            let step = try #require(
                explanation.subscriptions.first?.steps(of: explanation.subscriptions[0].verdict(at: world.now)).first)
            #expect(step.observation?.receiptID == receipt)
            #expect(try await world.explain("ann", "gold").text.contains("ever gave, gold"))
            let before = try await world.explain("ann", at: world.at(-20))
            #expect(before.text.contains("It had not begun at that moment."))
            #expect(before.text.contains("gives, or ever gave, any entitlement"))
        }
    }

    @Test("A source that grants comes first, and another owner is named")
    func aSourceThatGrantsComesFirstAndAnotherOwner() async throws {
        try await withWorld { world in
            try await world.tell(
                try await world.upload("a", by: "ann"), Body(from: world.at(-40), asOf: world.at(-1), renews: "0"))
            try await world.tell(
                try await world.upload("b", by: "ann"),
                Body(id: "2000", from: world.at(-1), asOf: world.at(-0.5), environment: .sandbox))
            let text = try await world.explain("ann").text
            #expect(text.contains("monthly: yes"))
            #expect(text.contains("It comes from subscription 2000 (monthly, Sandbox)."))
            #expect(text.contains("Not from subscription 1000 (monthly, Production): it gives no access at that"))
            #expect(text.contains("The customer switched renewal off."))
            let other = try await world.upload("a", by: "bob")
            try await world.tell(other, Body(from: world.at(-40), asOf: world.at(-0.1), renews: "0"))
            let lost = try await world.explain("ann").text
            #expect(lost.contains("bob owns it"))
            #expect(lost.contains("gives ann nothing"))
        }
    }

    @Test("Access is held while Apple was not asked")
    func heldWhileAppleWasNotAsked() async throws {
        try await withWorld { world in
            try await world.tell(
                try await world.upload("a", by: "ann"), Body(from: world.at(-35), asOf: world.at(-10)))
            let explanation = try await world.explain("ann")
            // Two hours of leeway and thirty days of allowance after the period's end.
            #expect(explanation.text.contains("access goes on until \((world.at(25) + .hours(2)).iso8601)"))
            let one = try #require(explanation.subscriptions.first)
            #expect(one.rule(of: one.verdict(at: explanation.reasons.at)) == "outage_allowance")
        }
    }

    @Test("The explanation uses stored facts where the answer is no longer kept")
    func whatIsNotKeptIsToldFromWhatIsStored() async throws {
        try await withWorld { world in
            try await world.tell(
                try await world.upload("a", by: "ann"), Body(from: world.at(-9), asOf: world.at(-8)))
            let id = world.app.id
            try await world.database.transaction {
                try $0.script(
                    """
                    UPDATE ledger.observation SET body = NULL
                    WHERE receipt_id IN (SELECT receipt_id FROM ledger.receipt WHERE app_id = \(id))
                    """)
            }
            let text = try await world.explain("ann").text
            #expect(text.contains("From stored facts: "))
            #expect(text.contains("an answer that is no longer kept"))
            #expect(text.contains("The customer may use monthly."))
        }
    }

    @Test("The explained entitlements are those of the lookup")
    func theRightsAreThoseOfTheLookup() async throws {
        try await withWorld { world in
            try await world.tell(
                try await world.upload("a", by: "ann"), Body(from: world.at(-9), asOf: world.at(-8)))
            try await world.tell(
                try await world.upload("b", by: "ann"),
                Body(id: "2000", from: world.at(-3), asOf: world.at(-2)))
            for day in [-20, -8.5, -2.5, 0, 22, 40] {
                let rights = try await world.ledger.customers.entitlements(
                    app: world.app.bundleID, customer: "ann", at: world.at(day))
                let explained = try await world.explain("ann", at: world.at(day)).rights
                #expect(explained.map(\.name) == rights.map(\.name))
                #expect(explained.map(\.winner.granted) == rights.map(\.granted))
                #expect(explained.map(\.winner.until) == rights.map(\.until))
            }
            #expect(try await world.explain("ann").text.contains("it ends earlier"))
        }
    }
}
