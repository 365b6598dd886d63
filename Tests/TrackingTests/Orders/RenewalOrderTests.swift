import SeededRandom
import TestSupport
import Testing

@testable import Subscriptions
@testable import Tracking

/// The periods of one subscription, and what Apple says at the end of each.
private struct Chain: Sendable {
    enum End: CaseIterable { case renewing, off, retried, unsaid }

    struct Part {
        /// Seconds since the end of the part before.
        var gap: Int64
        var end: End
    }

    /// The first period begins this many days before now.
    static let beginning = -700.0
    /// Gaps around the tolerance and around the longest one that Apple's retries explain, in seconds.
    static let gaps: [Int64] = [0, 1, -1, 3_599, 3_601, 7_200, 10 * 86_400, 64 * 86_400, 66 * 86_400]

    var parts: [Part]

    init(_ parts: [Part]) { self.parts = parts }

    init(_ random: inout Seeded) {
        parts = (0..<Int.random(in: 1...4, using: &random)).map { _ in
            Part(
                gap: Self.gaps.randomElement(using: &random) ?? 0,
                end: End.allCases.randomElement(using: &random) ?? .renewing)
        }
    }

    /// When a period begins, in seconds after the first one.
    func start(_ index: Int) -> Int64 {
        parts[..<index].indices.reduce(0) { $0 + 30 * 86_400 + parts[$1 + 1].gap }
    }

    /// Whether a period is a renewal, where Apple's word about the end of some periods is known.
    func isRenewal(_ index: Int, knowing said: Set<Int>) -> Bool {
        guard index > 0 else { return false }
        let (gap, end) = (parts[index].gap, said.contains(index - 1) ? parts[index - 1].end : .unsaid)
        switch end {
        case .unsaid, .off: return gap <= 3_600
        case .renewing, .retried: return gap <= 65 * 86_400
        }
    }
}

@Suite("A renewal pays only the order that its token names")
struct RenewalOrderTests {
    private func sell(in test: TestLedger) async throws {
        var monthly = CatalogProduct(id: "monthly", kind: .autoRenewable, entitlements: ["monthly"])
        monthly.deliversSince = test.at(Chain.beginning - 1)
        try await test.sell([monthly])
    }

    private func instant(_ seconds: Int64, in test: TestLedger) -> Instant {
        test.at(Chain.beginning) + .seconds(seconds)
    }

    /// What Apple says of some periods; with its word about the last one unless that is `unsaid`.
    private func answer(
        _ periods: [Int], of chain: Chain, _ name: String, in test: TestLedger
    ) throws -> Finding {
        let last = try #require(periods.last)
        let end = instant(chain.start(last) + 30 * 86_400, in: test)
        let isRetried = chain.parts[last].end == .retried
        let asOf = isRetried ? end + .minutes(1) : end - .minutes(1) - .seconds(Int64(periods.count))
        let rows = periods.map { index in
            let from = instant(chain.start(index), in: test)
            var row = TransactionRow(
                path: "latest_receipt_info[\(index)]", source: .latestReceiptInfo, asOf: asOf,
                transactionID: TransactionID(index == 0 ? name : "\(name)-\(index)"),
                originalTransactionID: OriginalTransactionID(name),
                webOrderLineItemID: WebOrderLineItemID("\(name)-\(index)"), productID: "monthly", purchasedAt: from,
                expiresAt: from + .days(30))
            (row.originalPurchasedAt, row.groupID) = (instant(0, in: test), "group")
            row.ownership = .purchased
            return row
        }
        let renewal = RenewalRow(
            path: "pending_renewal_info[0]", asOf: asOf, originalTransactionID: OriginalTransactionID(name),
            renewal: Renewal(
                productID: "monthly", willRenew: chain.parts[last].end != .off, expirationIntent: isRetried ? "2" : nil,
                inBillingRetry: isRetried ? true : nil))
        return .verified(
            Evidence(
                environment: .production, bundleID: "com.example.app", asOf: asOf, transactions: rows,
                renewals: chain.parts[last].end == .unsaid ? [] : [renewal]))
    }

    /// Places an order a minute before a period of a chain.
    private func order(
        _ index: Int, of chain: Chain, by customer: String, in test: TestLedger
    ) async throws -> PlacedOrder {
        let order = try await test.place("monthly", by: customer)
        let at = instant(chain.start(index) - 60, in: test).iso8601
        try await test.run("UPDATE ledger.purchase_order SET created_at = '\(at)' WHERE order_id = '\(order.id)'")
        return order
    }

    @Test(
        "What Apple charged as the subscription went on pays nothing, by whichever way it comes, and its delivery says renewal",
        arguments: [false, true])
    func examples(isProved: Bool) async throws {
        typealias Part = Chain.Part
        let first = Part(gap: 0, end: .retried)
        let stories: [(name: String, chain: Chain, answers: [[Int]], isRenewal: Bool)] = [
            ("recovered", Chain([first, Part(gap: 7_200, end: .renewing)]), [[0], [0, 1]], true),
            ("a second late", Chain([first, Part(gap: 1, end: .renewing)]), [[0, 1]], true),
            ("alone", Chain([first, Part(gap: 90 * 86_400, end: .renewing)]), [[1]], true),
            (
                "within the hour, renewal off",
                Chain([Part(gap: 0, end: .off), Part(gap: 3_599, end: .renewing)]), [[0], [0, 1]], true
            ),
            (
                "resubscribed",
                Chain([Part(gap: 0, end: .off), Part(gap: 7_200, end: .renewing)]), [[0], [0, 1]], false
            ),
            ("a gap that nothing explains", Chain([first, Part(gap: 30 * 86_400, end: .renewing)]), [[0, 1]], false),
            ("given up", Chain([first, Part(gap: 66 * 86_400, end: .renewing)]), [[0], [0, 1]], false),
        ]
        try await withLedger { test in
            try await sell(in: test)
            for story in stories {
                let order = try await order(1, of: story.chain, by: story.name, in: test)
                for (place, periods) in story.answers.enumerated() {
                    let name = "\(story.name) \(periods)"
                    let receipt =
                        isProved && place == story.answers.count - 1
                        ? try await test.send(name, for: order) : try await test.upload(name, by: story.name)
                    try await test.check(
                        receipt, try answer(periods, of: story.chain, story.name, in: test))
                }
                let log = try await test.log(of: order)
                #expect(
                    log
                        == (story.isRenewal
                            ? "created placed" : "created placed, paid \(isProved ? "proof" : "product")"),
                    "\(story.name)")
                if isProved { continue }
                let reason = try await test.text(
                    "SELECT reason FROM perennial.delivery_log WHERE transaction_id = '\(story.name)-1'")
                #expect(reason == (story.isRenewal ? "renewal" : "purchase"), "\(story.name)")
            }
            #expect(try await test.violations() == [])
        }
    }

    @Test(
        "The same orders are paid in every arrival order, and as a model of few lines says",
        arguments: 0..<6 as Range<UInt64>)
    func arrivals(block: UInt64) async throws {
        try await withLedger { test in
            try await sell(in: test)
            for number in 0..<12 as Range<UInt64> {
                var random = Seeded(seed: 40_400 + block * 100 + number)
                print(random)
                let chain = Chain(&random)
                let all = Array(chain.parts.indices)
                // What two devices have: the whole, lone rows, and what was known before.
                var answers = [all]
                for index in all where Bool.random(using: &random) { answers.append(Array(all[...index])) }
                if Bool.random(using: &random), let one = all.randomElement(using: &random) { answers.append([one]) }
                let ordered = all.filter { _ in Bool.random(using: &random) }
                let said = Set(answers.compactMap(\.last).filter { chain.parts[$0].end != .unsaid })
                var paid: Set<Int> = []
                for index in all where !chain.isRenewal(index, knowing: said) {
                    if let order = ordered.last(where: { $0 <= index && !paid.contains($0) }) { paid.insert(order) }
                }
                let isProved = Bool.random(using: &random)
                for turn in 0..<3 {
                    let name = "\(random.seed)-\(turn)"
                    var orders: [Int: PlacedOrder] = [:]
                    for index in ordered { orders[index] = try await order(index, of: chain, by: name, in: test) }
                    for periods in answers.shuffled(using: &random) {
                        let text = "\(name) \(periods)"
                        let receipt: ReceiptID
                        if isProved, let order = ordered.last.flatMap({ orders[$0] }) {
                            receipt = try await test.send(text, for: order, by: name)
                        } else {
                            receipt = try await test.upload(text, by: name)
                        }
                        try await test.check(receipt, try answer(periods, of: chain, name, in: test))
                    }
                    var now: Set<Int> = []
                    for (index, order) in orders {
                        let read = try await test.ledger.orders.read(order.id, of: test.app.bundleID)
                        if read?.state == .paid { now.insert(index) }
                    }
                    #expect(now == paid, "\(name) \(chain) \(answers) \(ordered)")
                    let reasons = try await test.text(
                        """
                        SELECT string_agg(p.is_renewal::text, ' ' ORDER BY p.purchased_at)
                        FROM ledger.period p JOIN ledger.subscription s USING (subscription_id)
                        WHERE s.original_transaction_id = '\(name)'
                        """)
                    let expected = all.map { "\(chain.isRenewal($0, knowing: said))" }.joined(separator: " ")
                    #expect(reasons == expected, "\(name) \(chain) \(answers)")
                }
            }
            #expect(try await test.violations() == [])
        }
    }
}
