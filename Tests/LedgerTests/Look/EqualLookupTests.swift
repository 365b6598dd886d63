import Postgres
import Subscriptions
import Testing

@testable import Ledger

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

/// What was known at one moment: Apple's word and what was given by hand.
private struct Known {
    let at: Instant
    let state: SubscriptionState?
    let hand: [(from: Instant, until: Instant?)]

    /// What Apple's word gives, by the pure functions alone.
    func verified(_ right: ProductID, at time: Instant, policy: Policy) -> Said? {
        guard let state, let current = state.timeline.span(at: time) else { return nil }
        let spans = state.timeline.spans
        guard spans.contains(where: { $0.entitled && $0.from <= time && $0.productID == right }) else { return nil }
        let held = state.hold.holds(at: time, asOf: state.asOf, policy: policy)
        let granted = (current.entitled || held) && current.productID == right
        let change = spans.first {
            $0.from > time && !($0.state == current.state && $0.productID == right)
        }
        return Said(
            granted: granted,
            until: granted ? held ? state.hold.allowanceEnd(policy: policy) : change?.from : nil,
            product: current.productID.text, state: held ? "awaiting_renewal" : current.state.rawValue,
            reason: held ? "renewal" : current.reason?.rawValue, basis: "verified")
    }

    /// The winner between Apple's word and what was given by hand.
    func said(_ right: ProductID, at time: Instant, policy: Policy) -> Said {
        let apple = verified(right, at: time, policy: policy)
        guard right == "monthly", let hand = hand.last(where: { $0.from <= time }) else { return apple ?? Said() }
        guard hand.until.map({ time < $0 }) ?? true else {
            return apple ?? Said(state: "expired", reason: "other", basis: "by_hand")
        }
        let given = Said(granted: true, until: hand.until, state: "active", basis: "by_hand")
        guard let apple, apple.granted else { return given }
        guard let appleEnd = apple.until, let handEnd = hand.until else { return apple.until == nil ? apple : given }
        return handEnd > appleEnd ? given : apple
    }
}

@Suite("SQL and Swift say the same of every history")
struct EqualLookupTests {
    /// Histories a seed tells, and instants at which each is asked about, beside its boundaries.
    private static let (histories, instants) = (12, 8)

    @Test(arguments: [1, 2, 3] as [UInt64])
    func agree(seed: UInt64) async throws {
        try await withLedger { test in
            var random = Seeded(seed: seed)
            for history in 0..<Self.histories {
                let known = try await tell(history, in: test, using: &random)
                try await compare(history, known, in: test, using: &random, seed: seed)
            }
        }
    }

    /// Lets one subscription live through some random answers, with grants by hand between them.
    private func tell(_ history: Int, in test: TestLedger, using random: inout Seeded) async throws -> [Known] {
        let (id, customer) = (OriginalTransactionID("s\(history)"), "c\(history)")
        let policy = test.app.policy(for: .production, speedup: 1)
        let receipt = try await test.upload("r\(history)", by: customer)
        var answer = Answer(from: test.at(-Double(Int.random(in: 5...120, using: &random))), asOf: test.at(-4))
        answer.subscription = id
        var state: SubscriptionState?
        var hand: [(from: Instant, until: Instant?)] = []
        var known: [Known] = []
        let answers = Int.random(in: 1...4, using: &random)
        for step in 0..<answers {
            vary(&answer, step: step, of: answers, in: test, using: &random)
            try await test.check(receipt, answer)
            state = reconcile(state, with: answer.evidence.slice(of: id), policy: policy).state
            if Int.random(in: 0..<3, using: &random) == 0 {
                let until = Bool.random(using: &random) ? test.at(Double(Int.random(in: 1...60, using: &random))) : nil
                let grant = try await test.ledger.grant(
                    "monthly", to: customer, of: test.app.bundleID, until: until,
                    deciding: HandDecision(by: "kim", because: "seed"))
                if let last = hand.indices.last { hand[last].until = min(hand[last].until ?? grant.since, grant.since) }
                hand.append((grant.since, until))
            }
            // The next millisecond: an instant has no microseconds, in which the last answer may have been recorded.
            let moment = try await test.ledger.now() + Delay(milliseconds: 1)
            while try await test.ledger.now() <= moment {}
            known.append(Known(at: moment, state: state, hand: hand))
        }
        return known
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
        let policy = test.app.policy(for: .production, speedup: 1)
        for moment in known {
            var times = (0..<Self.instants).map { _ in
                test.at(Double.random(in: -130...90, using: &random))
            }
            times += moment.state?.timeline.spans.flatMap { [$0.from, $0.from + Delay(milliseconds: -1)] } ?? []
            times += [moment.state?.hold.accessEndsAt, moment.state?.hold.allowanceEnd(policy: policy)].compactMap(
                \.self)
            // An end that was cut has microseconds, which an instant has not.
            times += moment.hand.map { $0.from + Delay(milliseconds: 1) }
            times += moment.hand.compactMap(\.until).filter { $0 > moment.at }
            for time in times {
                for right in ["monthly", "yearly"] as [ProductID] {
                    let expected = moment.said(right, at: time, policy: policy)
                    let told = try await asked(right, of: "c\(history)", at: time, knownAt: moment.at, in: test)
                    #expect(
                        told == expected,
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
