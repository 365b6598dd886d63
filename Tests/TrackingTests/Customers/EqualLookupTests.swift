import Postgres
import SeededRandom
import Subscriptions
import Testing

@testable import Tracking

/// What a lookup answers, in the columns both sides have.
private struct Said: Equatable, CustomStringConvertible {
    var granted = false
    var until: Instant?
    var product: String?
    var state: String?
    var reason: String?
    var basis = "none"

    var description: String {
        "\(granted) \(until.map { "\($0.milliseconds)" } ?? "-") \(product ?? "-") \(state ?? "-") \(reason ?? "-") \(basis)"
    }
}

/// The operator's word for a product until Apple is asked.
private struct Promise {
    let product: ProductID
    let since: Instant
    let until: Instant

    /// What it gives while Apple was not asked.
    func said(_ right: ProductID, at time: Instant) -> Said? {
        guard right == product, since <= time else { return nil }
        let runs = time < until
        return Said(
            granted: runs, until: runs ? until : nil, product: product.text, state: runs ? "active" : "expired",
            reason: runs ? nil : "unknown", basis: "provisional")
    }
}

/// What was known at one moment: Apple's word, the manual grant, and what an import promised.
private struct Known {
    let at: Instant
    let state: SubscriptionState?
    let hand: [(from: Instant, until: Instant?)]
    let promise: Promise?

    /// What Apple's word gives, by the pure functions alone.
    func verified(_ right: ProductID, at time: Instant, policy: Policy) -> Said? {
        guard let state, let current = state.timeline.span(at: time) else { return nil }
        let spans = state.timeline.spans
        guard spans.contains(where: { $0.entitled && $0.from <= time && $0.productID == right }) else { return nil }
        let held = state.outageAllowance.applies(at: time, asOf: state.asOf, policy: policy)
        let granted = (current.entitled || held) && current.productID == right
        let change = spans.first {
            $0.from > time && !($0.state == current.state && $0.productID == right)
        }
        return Said(
            granted: granted,
            until: granted ? held ? state.outageAllowance.allowanceEnd(policy: policy) : change?.from : nil,
            product: current.productID.text, state: held ? "awaiting_renewal" : current.state.rawValue,
            reason: held ? "renewal" : current.reason?.rawValue, basis: "verified")
    }

    /// What the manual grant gives, whether it still runs or not.
    func given(_ right: ProductID, at time: Instant) -> Said? {
        guard right == "monthly", let hand = hand.last(where: { $0.from <= time }) else { return nil }
        guard hand.until.map({ time < $0 }) ?? true else {
            return Said(state: "expired", reason: "other", basis: "by_hand")
        }
        return Said(granted: true, until: hand.until, state: "active", basis: "by_hand")
    }

    /// The winner: a running manual grant counts like Apple's answer, then the provisional claim, last what is over.
    func said(_ right: ProductID, at time: Instant, policy: Policy) -> Said {
        let apple = verified(right, at: time, policy: policy)
        let hand = given(right, at: time)
        guard let hand, hand.granted else { return apple ?? promise?.said(right, at: time) ?? hand ?? Said() }
        guard let apple, apple.granted else { return hand }
        guard let appleEnd = apple.until, let handEnd = hand.until else { return apple.until == nil ? apple : hand }
        return handEnd > appleEnd ? hand : apple
    }
}

@Suite("SQL and Swift say the same of every history")
struct EqualLookupTests {
    /// Histories a seed tells, and instants at which each is asked about, beside its boundaries.
    private static let (histories, instants) = (12, 8)

    @Test("All lookups agree", arguments: [1, 2, 3] as [UInt64])
    func agree(seed: UInt64) async throws {
        try await withLedger { test in
            var random = Seeded(seed: seed)
            print(random)
            for history in 0..<Self.histories {
                let known = try await tell(history, in: test, using: &random)
                try await compare(history, known, in: test, using: &random, seed: seed)
            }
        }
    }

    /// Lets one subscription live through some random answers, with manual grants and promises of imports between them.
    private func tell(_ history: Int, in test: TestLedger, using random: inout Seeded) async throws -> [Known] {
        let (id, customer) = (OriginalTransactionID("s\(history)"), "c\(history)")
        let policy = test.app.policy(for: .production)
        let receipt = try await test.upload("r\(history)", by: customer)
        var answer = Answer(from: test.at(-Double(Int.random(in: 5...120, using: &random))), asOf: test.at(-4))
        answer.subscription = id
        var state: SubscriptionState?
        var hand: [(from: Instant, until: Instant?)] = []
        var promise: Promise?
        var known: [Known] = []
        let answers = Int.random(in: 1...4, using: &random)
        for step in 0..<answers {
            vary(&answer, step: step, of: answers, in: test, using: &random)
            try await test.check(receipt, answer)
            state = reconcile(state, with: answer.evidence.slice(of: id), policy: policy).state
            if Int.random(in: 0..<3, using: &random) == 0 {
                let until = Bool.random(using: &random) ? test.at(Double(Int.random(in: 1...60, using: &random))) : nil
                let grant = try await test.ledger.customers.grant(
                    "monthly", to: customer, of: test.app.bundleID, until: until,
                    deciding: ManualDecision(by: "kim", because: "seed"))
                if let last = hand.indices.last { hand[last].until = min(hand[last].until ?? grant.since, grant.since) }
                hand.append((grant.since, until))
            }
            promise = try await promised(promise, to: customer, in: test, using: &random)
            // The next millisecond: an instant has no microseconds, in which the last answer may have been recorded.
            let moment = try await test.ledger.now() + Delay(milliseconds: 1)
            while try await test.ledger.now() <= moment {}
            known.append(Known(at: moment, state: state, hand: hand, promise: promise))
        }
        return known
    }

    /// Says something of another receipt, says something else of it, or lets Apple speak of it, who knows of nothing.
    private func promised(
        _ promise: Promise?, to customer: String, in test: TestLedger, using random: inout Seeded
    ) async throws -> Promise? {
        let receipt = "promised-to-\(customer)"
        switch Int.random(in: 0..<4, using: &random) {
        case 0: return promise
        case 1 where promise != nil:
            let nothing = Answer(from: test.at(-1), periods: 0, asOf: test.at(-0.5))
            try await test.check(try await test.upload(receipt, by: customer), nothing)
            return nil
        default:
            let product = promise?.product ?? (Bool.random(using: &random) ? "monthly" : "yearly")
            let days = Double(Int.random(in: 1...60, using: &random))
            try await ProvisionalTests.say(days, of: product, receipt: receipt, by: customer, in: test)
            let rows = try await test.database.query(
                .test(
                    """
                    SELECT p.since, p.until FROM ledger.provisional p
                    JOIN ledger.customer c USING (customer_id) JOIN ledger.receipt r USING (receipt_id)
                    WHERE c.name = $1::text AND r.first_verified_at IS NULL ORDER BY p.stated_at DESC LIMIT 1
                    """), [.text(customer)])
            return try rows.first.map {
                Promise(product: product, since: try $0.instant("since"), until: try $0.instant("until"))
            }
        }
    }

    private func vary(
        _ answer: inout Answer, step: Int, of steps: Int, in test: TestLedger, using random: inout Seeded
    ) {
        let age = Double(steps - step) - Double.random(in: 0..<0.9, using: &random)
        answer.asOf = test.at(-age * Double(Int.random(in: 1...12, using: &random)))
        let started = max(0, answer.asOf.milliseconds - answer.from.milliseconds) / 2_592_000_000
        answer.periods = max(1, Int(started) + Int.random(in: 0...1, using: &random))
        answer.willRenew = [true, true, false, nil][Int.random(in: 0..<4, using: &random)]
        answer.intent = answer.willRenew == true ? nil : [nil, "1", "2", "3"][Int.random(in: 0..<4, using: &random)]
        answer.inRetry = Int.random(in: 0..<5, using: &random) == 0 ? true : nil
        let end = answer.from + .days(Int64(30 * answer.periods))
        answer.graceUntil = Int.random(in: 0..<6, using: &random) == 0 ? end + .days(16) : nil
        if Int.random(in: 0..<6, using: &random) == 0 {
            let period = answer.periods - 1
            answer.refunded = (period, answer.from + .days(Int64(30 * period + 3)))
        }
        if Int.random(in: 0..<5, using: &random) == 0 { answer.product = "yearly" }
        answer.trial = Int.random(in: 0..<4, using: &random) == 0
    }

    private func compare(
        _ history: Int, _ known: [Known], in test: TestLedger, using random: inout Seeded, seed: UInt64
    ) async throws {
        let policy = test.app.policy(for: .production)
        for moment in known {
            var times = (0..<Self.instants).map { _ in
                test.at(Double.random(in: -130...90, using: &random))
            }
            times += moment.state?.timeline.spans.flatMap { [$0.from, $0.from + Delay(milliseconds: -1)] } ?? []
            times += [
                moment.state?.outageAllowance.accessEndsAt, moment.state?.outageAllowance.allowanceEnd(policy: policy),
            ].compactMap(
                \.self)
            times += moment.hand.compactMap(\.until).filter { $0 > moment.at }
            times += [moment.promise].compactMap(\.self).map(\.until)
            // What a statement began or cut has microseconds, which an instant has not: in that millisecond both may be right.
            let began = moment.hand.map(\.from) + [moment.promise].compactMap(\.self).map(\.since)
            times += began.map { $0 + Delay(milliseconds: 1) }
            for time in times where !began.contains(time) {
                for right in ["monthly", "yearly"] as [ProductID] {
                    let expected = moment.said(right, at: time, policy: policy)
                    let reported = try await asked(right, of: "c\(history)", at: time, knownAt: moment.at, in: test)
                    #expect(
                        reported == expected,
                        "seed \(seed), history \(history), \(right) at \(time.iso8601) as known at \(moment.at.iso8601)"
                    )
                }
            }
        }
    }

    private func asked(
        _ right: ProductID, of customer: String, at time: Instant, knownAt known: Instant, in test: TestLedger
    ) async throws -> Said {
        let rows = try await test.database.query(
            .test(
                "SELECT * FROM perennial.entitled_at('com.example.app', $1::text, $2::text, $3::timestamptz, $4::timestamptz)"
            ),
            [.text(customer), .text(right.text), .instant(time), .instant(known)])
        let row = try #require(rows.first)
        return Said(
            granted: try row.bool("granted"), until: try row.instantIfPresent("until"),
            product: try row.textIfPresent("product_id"), state: try row.textIfPresent("state"),
            reason: try row.textIfPresent("reason"), basis: try row.text("basis"))
    }
}
