import AppStore
import AppStoreSimulator
import Foundation
import Subscriptions
import Testing
import Tracking

/// The calls of support, against the simulator over HTTP.
@Suite("A support call is stored before it is made, and a repetition is the same request")
struct SupportCallTests {
    private func lengthening(_ days: Int, _ reason: RenewalExtension.Reason = .outage) throws -> RenewalExtension {
        try #require(RenewalExtension(days: days, reason: reason))
    }

    @Test("An extension is done once for each request, and makes the subscription's check due")
    func extend() async throws {
        try await SupportWorld.with { support in
            let extend = SupportChange.extend(originalTransactionID: support.id, try lengthening(3))
            #expect(try await support.rows("count(*)", "ledger.poll_schedule WHERE due_at <= now()") == ["0"])
            let before = try #require(support.world.simulator.truth().first?.subscriptions[0].periods.last).expires
            let first = try await support.make(extend)
            let until = Instant(milliseconds: before + 3 * 3_600_000 / 30)
            #expect(first.call.outcome == .done && first.call.extendedUntil == until && !first.isRepeated)
            #expect(first.isChecked)
            #expect(try await support.rows("count(*)", "ledger.poll_schedule WHERE due_at <= now()") == ["1"])

            let second = try await support.make(extend)
            #expect(second.isRepeated && second.call == first.call && !second.isChecked)
            #expect(support.world.simulator.serverCallCount == 1, "what was done is not sent again")
            let again = try await support.make(extend, again: true)
            #expect(again.call.requestID != first.call.requestID && again.call.outcome == .done)
            #expect(
                try await support.rows(
                    "kind, subject, outcome, attempts", "perennial.support_log ORDER BY first_asked_at")
                    == ["extend \(support.id) done 1", "extend \(support.id) done 1"])
            #expect(
                try await support.rows(
                    "actor, action, detail->>'call', detail->>'subject', detail->>'attempt', detail->>'request_id'",
                    "perennial.audit_log WHERE action LIKE 'support%' ORDER BY audit_id")
                    == [first, again].map {
                        "user kim support.requested extend \(support.id) 1 \($0.call.requestID)"
                    })

            let other = SupportChange.extend(originalTransactionID: support.id, try lengthening(5))
            await support.expectRefusal("extended twice within a year, which is the most (4030005)") {
                _ = try await support.make(other)
            }
            await support.expectRefusal("(4030005)") { _ = try await support.make(other) }
            #expect(
                try await support.rows("outcome, code, attempts", "perennial.support_log WHERE outcome <> 'done'")
                    == ["refused 4030005 2"], "a repetition of what was refused is the same request")
        }
    }

    @Test("An answer that does not come leaves the request open, and the next attempt has its identifier")
    func unknown() async throws {
        try await SupportWorld.with { support in
            try await support.control("faults", ["kind": "http", "code": 503, "channel": "server_api"])
            let extend = SupportChange.extend(originalTransactionID: support.id, try lengthening(1))
            await support.expectRefusal("the same call again is the same request", isRefusal: false) {
                _ = try await support.make(extend)
            }
            support.world.simulator.clearFaults()
            let open = try await support.rows("request_id, outcome", "perennial.support_log")
            #expect(open.count == 1 && open[0].hasSuffix(" failed"))
            let done = try await support.make(extend)
            #expect(open == ["\(done.call.requestID) failed"] && done.call.attempts == 2 && done.call.outcome == .done)
            // A process that was killed leaves a call without an outcome.
            try await support.world.run("UPDATE ledger.support_call SET outcome = 'sent', answered_at = NULL")
            let busy = await #expect(throws: LedgerError.self) { _ = try await support.make(extend) }
            #expect(busy?.kind == .busy)
            try await support.world.run("UPDATE ledger.support_call SET asked_at = now() - interval '61 seconds'")
            let taken = try await support.make(extend)
            #expect(taken.call.requestID == done.call.requestID && taken.call.extendedUntil == done.call.extendedUntil)
        }
    }

    @Test("All subscriptions of a product are extended by one request, and Apple says how far it is")
    func extendAll() async throws {
        try await SupportWorld.with { support in
            for _ in 0..<3 { _ = support.world.simulator.createCustomer(CustomerScript()) }
            let product = "com.example.tracker.monthly"
            let all = SupportChange.extendAll(productID: product, countries: [], try lengthening(2))
            let made = try await support.make(all)
            let repeated = try await support.make(all)
            #expect(repeated.isRepeated && repeated.call.requestID == made.call.requestID)
            let stored = try await support.world.tracker.ledger.support.massExtension(
                of: product, in: .production, of: support.app)
            #expect(stored == made.call.requestID)
            let status = try await support.ask(
                .extensionStatus(productID: product, requestID: made.call.requestID))
            guard case .extensionStatus(let status) = status else { throw SupportWorld.NotSettled() }
            #expect(status.isComplete && status.succeeded == 4 && status.failed == 0)
            await support.expectRefusal("no extension of this product by this request (4040009)") {
                _ = try await support.ask(.extensionStatus(productID: product, requestID: "unknown"))
            }
            let unknown = SupportChange.extendAll(productID: "none", countries: ["USA"], try lengthening(2))
            await support.expectRefusal("no subscription product of this id (4000023)") {
                _ = try await support.make(unknown)
            }
        }
    }

    @Test("A transaction, a history and refunds are verified before they are shown, and the reader is recorded")
    func reads() async throws {
        try await SupportWorld.with { support in
            func transactions(_ question: SupportQuestion) async throws -> [SignedTransaction] {
                guard case .transactions(let found, goesOn: false) = try await support.ask(question) else {
                    throw SupportWorld.NotSettled()
                }
                return found
            }
            let (simulator, id) = (support.world.simulator, support.id)
            #expect(try await transactions(.transaction(id: id)).map(\.row.transactionID.text) == [id])
            #expect(try await transactions(.history(id: id)).map(\.row.originalTransactionID.text) == [id])
            #expect(try await transactions(.refunds(id: id)) == [])
            let customer = try #require(simulator.truth().first).customer
            _ = try simulator.act(CustomerAction(.refund), on: customer)
            let refunds = try await transactions(.refunds(id: id))
            #expect(refunds.map(\.row.transactionID.text) == [id] && refunds[0].row.cancelledAt != nil)
            await support.expectRefusal("Apple knows no such transaction of the app in Production") {
                _ = try await support.ask(.transaction(id: "1"))
            }
            for (kind, words) in [("forged", "cannot be verified"), ("foreign", "the answer is for another one")] {
                try await support.control("faults", ["kind": kind, "channel": "server_api"])
                await support.expectRefusal(words, isRefusal: false) { _ = try await support.ask(.refunds(id: id)) }
                support.world.simulator.clearFaults()
            }
            #expect(
                try await support.rows(
                    "detail->>'call', detail->>'environment', detail->>'subject'",
                    "perennial.audit_log WHERE action = 'support.read' ORDER BY audit_id LIMIT 3")
                    == ["transaction Production \(id)", "history Production \(id)", "refunds Production \(id)"])
        }
    }

    @Test("Consumption is sent once until Apple asks anew, and what was withheld can be sent later")
    func consumption() async throws {
        try await SupportWorld.with { support in
            let id = try support.coins()
            let report = try #require(
                ConsumptionReport(delivery: .delivered, sampled: false, consumedPercent: 50, preference: .decline))
            let withheld = try await support.tracker.withholdConsumption(
                of: id, about: support.app, in: .production)
            #expect(withheld.call.outcome == .withheld && support.world.simulator.serverCallCount == 0)
            let sent = try await support.make(.consumption(transactionID: id, report))
            #expect(sent.call.outcome == .done && sent.call.requestID == withheld.call.requestID)
            let other = try #require(ConsumptionReport(delivery: .other, sampled: true))
            let again = try await support.make(.consumption(transactionID: id, other))
            #expect(again.isRepeated && support.world.simulator.serverCallCount == 1)
            #expect(
                try await support.rows(
                    "request->>'consumptionPercentage', request->>'deliveryStatus'", "perennial.support_log")
                    == ["50000 DELIVERED"])
            try await support.world.run(
                """
                INSERT INTO ledger.notification (app_id, received_at, version, kind, apple_id, environment,
                    original_transaction_id, transaction_id, signed_at, effect, texts)
                SELECT app_id, now(), 2, 'CONSUMPTION_REQUEST', 'n1', 'Production', '\(id)', '\(id)', now() + interval '1 s',
                    'applied', '' FROM ledger.app
                """)
            let anew = try await support.make(.consumption(transactionID: id, other))
            #expect(!anew.isRepeated && anew.call.requestID != sent.call.requestID)
            #expect(ConsumptionReport(delivery: .wrongItem, sampled: false, consumedPercent: 1) == nil)
        }
    }

    @Test("A token is set once for each value, and Apple's limits of calls hold the app back")
    func tokensAndLimits() async throws {
        try await SupportWorld.with { support in
            let token = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
            let set = SupportChange.accountToken(originalTransactionID: support.id, token: token)
            let made = try await support.make(set)
            #expect(made.call.outcome == .done && made.isChecked)
            #expect(try await support.make(set).isRepeated)
            guard case .transactions(let found, _) = try await support.ask(.transaction(id: support.id)) else { return }
            #expect(found.first?.row.appAccountToken == token)
            try await support.control("rates", ["endpoint": "account_token", "per_second": 0])
            let other = SupportChange.accountToken(
                originalTransactionID: support.id, token: "6f1e5a9c-0000-4000-8000-0123456789ab")
            await support.expectRefusal("Apple asks for fewer calls") { _ = try await support.make(other) }
            #expect(
                try await support.rows("endpoint", "ledger.call_budget WHERE paused_until > now()") == ["extensions"])
        }
    }
}
