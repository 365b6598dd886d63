import Postgres
import TestSupport
import Testing

@testable import Subscriptions
@testable import Tracking

/// The life of a term of twelve payments at 10.99 a month, bought on 8 June 2024, as it is counted; what its states and
/// events are, `CommitmentTests` says.
@Suite("A term of payments counts as one customer who pays each month, and as one renewal") struct TermTimelineTests {
    /// Purchase and expiry of each payment, by its number less one. The sixth was made twelve days late.
    private static let payments = [
        ("2024-06-08", "2024-07-08"), ("2024-07-08", "2024-08-08"), ("2024-08-08", "2024-09-08"),
        ("2024-09-08", "2024-10-08"), ("2024-10-08", "2024-11-08"), ("2024-11-20", "2024-12-20"),
        ("2024-12-20", "2025-01-20"), ("2025-01-20", "2025-02-20"), ("2025-02-20", "2025-03-20"),
        ("2025-03-20", "2025-04-20"), ("2025-04-20", "2025-05-20"), ("2025-05-20", "2025-06-20"),
    ]

    /// One answer about a subscription.
    private struct Said {
        var day: String
        /// How many payments were made.
        var paid: Int
        /// Whether Apple tries the next payment, and whether the customer wants another term; nil outside of one.
        var wills: (Bool, Bool?)
        /// Payments that were refunded, with the day.
        var refunded: [Int: String] = [:]
        /// Payments that another product replaced, with the day.
        var replaced: [Int: String] = [:]
        var retry: Bool?
        var intent: String?
        var after: [TransactionRow] = []
    }

    private func at(_ day: String) throws -> Instant {
        try #require(Instant(iso8601: day + "T00:00:00.000Z"))
    }

    private func row(
        _ id: String, _ number: String, from: String, until: String, product: ProductID = "yearly",
        price: Int64 = 10_990, _ sale: Sale
    ) throws -> TransactionRow {
        var row = TransactionRow(
            path: "history[0].signedTransactions[\(number)]", source: .signedText, asOf: try at(until),
            transactionID: TransactionID("\(id)\(number)"), originalTransactionID: OriginalTransactionID(id),
            webOrderLineItemID: WebOrderLineItemID("\(id)-\(number)"), productID: product, purchasedAt: try at(from),
            expiresAt: try at(until))
        (row.groupID, row.ownership) = ("group", .purchased)
        (row.price, row.sale) = (Price(milliunits: price, currency: "USD"), sale)
        return row
    }

    private func finding(_ id: String, _ said: Said) throws -> Finding {
        var rows = try (1...said.paid).map { number in
            let (from, until) = Self.payments[number - 1]
            let ends = try at(number < 6 ? "2025-06-08" : "2025-06-20")
            var sale = Sale(
                plan: Sale.monthly, payment: Sale.Payment(number: number, total: 12, termEndsAt: ends))
            if said.refunded[number] != nil { sale.revocationType = "REFUND_FULL" }
            var row = try self.row(id, "\(number)", from: from, until: until, sale)
            row.cancelledAt = try (said.refunded[number] ?? said.replaced[number]).map(at)
            row.isUpgraded = said.replaced[number] != nil
            return row
        }
        rows += said.after
        let asOf = try at(said.day) + .minutes(1)
        for index in rows.indices { rows[index].asOf = asOf }
        let product = try #require(rows.last).productID
        return .verified(
            Evidence(
                environment: .production, bundleID: "com.example.app", asOf: asOf, receiptCreatedAt: nil,
                transactions: rows,
                renewals: [
                    RenewalRow(
                        path: "statuses.data[0].lastTransactions[0].signedRenewalInfo", asOf: asOf,
                        originalTransactionID: OriginalTransactionID(id),
                        renewal: Renewal(
                            productID: product, renewsToProductID: product, willRenew: said.wills.0,
                            expirationIntent: said.intent, inBillingRetry: said.retry,
                            term: said.wills.1.map { TermWill(renews: $0, productID: product, plan: Sale.monthly) }
                                ?? TermWill()))
                ]))
    }

    /// The second payment was refunded.
    private static let back = [2: "2024-09-15"]

    /// Every row of the timeline but its end.
    private static let year = [
        Said(day: "2024-06-08", paid: 1, wills: (true, true)),
        Said(day: "2024-07-08", paid: 2, wills: (true, true)),
        Said(day: "2024-08-08", paid: 3, wills: (true, true)),
        Said(day: "2024-08-20", paid: 3, wills: (true, false)),
        Said(day: "2024-09-08", paid: 4, wills: (true, false)),
        Said(day: "2024-09-15", paid: 4, wills: (true, false), refunded: back),
        Said(day: "2024-10-08", paid: 5, wills: (true, false), refunded: back),
        Said(day: "2024-11-08", paid: 5, wills: (true, false), refunded: back, retry: true, intent: "2"),
        Said(day: "2024-11-20", paid: 6, wills: (true, false), refunded: back),
        Said(day: "2024-12-20", paid: 7, wills: (true, false), refunded: back),
        Said(day: "2025-01-05", paid: 7, wills: (true, true), refunded: back),
        Said(day: "2025-03-20", paid: 10, wills: (true, true), refunded: back),
        Said(day: "2025-05-20", paid: 12, wills: (true, true), refunded: back),
    ]

    private func ended(
        _ day: String, paid: Int, intent: String, _ change: (inout Said) -> Void = { _ in }
    ) -> Said {
        var said = Said(day: day, paid: paid, wills: (false, nil), retry: false, intent: intent)
        change(&said)
        return said
    }

    /// Each end of the timeline, as a subscription of its own.
    private func stories() throws -> [(String, [Said])] {
        let (year, back) = (Self.year, Self.back)
        let again = try row(
            "a", "13", from: "2025-06-20", until: "2025-07-20",
            Sale(
                plan: Sale.monthly, payment: Sale.Payment(number: 1, total: 12, termEndsAt: try at("2026-06-20"))))
        let upfront = try row(
            "b", "13", from: "2025-06-20", until: "2026-06-20", price: 99_000, Sale(plan: Sale.upfront))
        let higher = try row(
            "f", "4", from: "2024-08-20", until: "2025-08-20", product: "higher", price: 240_000,
            Sale(plan: Sale.upfront))
        let last = try #require(year.last)
        return [
            (
                "a",
                year + [
                    Said(day: "2025-06-20", paid: 12, wills: (true, true), refunded: back, after: [again]),
                    ended("2025-11-01", paid: 12, intent: "2") { ($0.refunded, $0.after) = (back, [again]) },
                ]
            ),
            (
                "b",
                [
                    last, Said(day: "2025-06-20", paid: 12, wills: (true, nil), refunded: back, after: [upfront]),
                    ended("2026-06-20", paid: 12, intent: "1") { ($0.refunded, $0.after) = (back, [upfront]) },
                ]
            ),
            ("c", [last, ended("2025-06-20", paid: 12, intent: "1") { $0.refunded = back }]),
            (
                "d",
                [
                    Said(day: "2024-11-08", paid: 5, wills: (true, true), retry: true, intent: "2"),
                    ended("2025-02-06", paid: 5, intent: "2"),
                ]
            ),
            (
                "e",
                [
                    Said(day: "2024-08-08", paid: 3, wills: (true, true)),
                    ended("2024-08-20", paid: 3, intent: "1") { $0.refunded = [3: "2024-08-20"] },
                ]
            ),
            (
                "f",
                [
                    Said(day: "2024-08-08", paid: 3, wills: (true, true)),
                    Said(
                        day: "2024-08-20", paid: 3, wills: (true, nil), replaced: [3: "2024-08-20"], after: [higher]),
                    ended("2025-08-20", paid: 3, intent: "1") {
                        ($0.replaced, $0.after) = ([3: "2024-08-20"], [higher])
                    },
                ]
            ),
            ("g", try unseen()),
        ]
    }

    /// A failure and its recovery between two looks.
    private func unseen() throws -> [Said] {
        [
            Said(day: "2024-10-20", paid: 5, wills: (true, true)),
            Said(day: "2024-11-21", paid: 6, wills: (true, true)),
            Said(day: "2025-05-20", paid: 12, wills: (true, true)), ended("2025-06-20", paid: 12, intent: "1"),
        ]
    }

    @Test("A retry that was not seen is told with the payment that proves it")
    func unseenRetry() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("g", by: "g")
            for said in try unseen() { try await test.check(receipt, finding("g", said)) }
            let reported = try await test.rows(
                """
                SELECT e.kind, e.occurred_at::date AS day
                FROM ledger.event e JOIN ledger.subscription s USING (subscription_id)
                WHERE s.original_transaction_id = 'g' AND e.kind NOT IN ('subscription.renewed', 'ownership.assigned')
                ORDER BY e.version, e.ordinal
                """)
            #expect(
                reported == [
                    "subscription.started 2024-06-08", "billing.retry_entered 2024-11-08",
                    "subscription.recovered 2024-11-20", "subscription.expired 2025-06-20",
                    "auto_renew.disabled 2025-06-20",
                ])
        }
    }

    @Test("MRR, churn, money and the renewal rate, for every row of the timeline and every end")
    func timeline() async throws {
        try await withLedger { test in
            for (id, story) in try stories() {
                let receipt = try await test.upload(id, by: id)
                for said in story { try await test.check(receipt, finding(id, said)) }
            }
            let moved = try await test.rows(
                """
                SELECT original_transaction_id AS id, day, kind, monthly_milliunits, ended_state, ended_reason
                FROM perennial.mrr_movement_as_known('infinity', 'UTC')
                WHERE kind NOT IN ('product_left', 'product_joined')
                ORDER BY original_transaction_id, day, kind
                """)
            #expect(
                moved == [
                    // A failed payment is no revenue until it is made, and no churn while it is owed; a cancellation within
                    // the term moves nothing. Of b and c the failure was over at first sight, and of g before the next look.
                    "a 2024-06-08 new 10990 - -", "a 2024-11-08 contraction -10990 - -",
                    "a 2024-11-20 expansion 10990 - -", "a 2025-07-20 churn -10990 expired billing_error",
                    "b 2024-06-08 new 10990 - -", "b 2024-11-08 contraction -10990 - -",
                    "b 2024-11-20 expansion 10990 - -", "b 2025-06-20 contraction -2740 - -",
                    "b 2026-06-20 churn -8250 expired voluntary",
                    "c 2024-06-08 new 10990 - -", "c 2024-11-08 contraction -10990 - -",
                    "c 2024-11-20 expansion 10990 - -", "c 2025-06-20 churn -10990 expired voluntary",
                    "d 2024-06-08 new 10990 - -", "d 2024-11-08 churn -10990 expired billing_error",
                    "e 2024-06-08 new 10990 - -", "e 2024-08-20 churn -10990 revoked refund",
                    "f 2024-06-08 new 10990 - -", "f 2024-08-20 expansion 9010 - -",
                    "f 2025-08-20 churn -20000 expired voluntary",
                    "g 2024-06-08 new 10990 - -", "g 2024-11-08 contraction -10990 - -",
                    "g 2024-11-20 expansion 10990 - -", "g 2025-06-20 churn -10990 expired voluntary",
                ])
            let renewals = try await test.rows(
                """
                SELECT k.original_transaction_id AS id, r.expires_at::date AS ends, r.product_id, r.next_is_paid
                FROM perennial.renewals_as_known('infinity') r JOIN perennial.subscription_key k USING (stream_id)
                ORDER BY k.original_transaction_id, r.expires_at
                """)
            #expect(
                renewals == [
                    "a 2025-06-20 yearly true", "b 2025-06-20 yearly true", "b 2026-06-20 yearly -",
                    "c 2025-06-20 yearly -", "f 2025-08-20 higher -", "g 2025-06-20 yearly -",
                ], "payments 2 to 12 are no renewals")
            let money = try await test.rows(
                """
                SELECT original_transaction_id AS id, kind, count(*) AS lines, sum(amount_milliunits) AS sum,
                       max(occurred_at) FILTER (WHERE kind = 'refund')::date AS refunded_on
                FROM perennial.revenue_event GROUP BY 1, 2 ORDER BY 1, 2
                """)
            #expect(
                money == [
                    "a charge 13 142870 -", "a refund 1 -10990 2024-09-15", "b charge 13 230880 -",
                    "b refund 1 -10990 2024-09-15", "c charge 12 131880 -", "c refund 1 -10990 2024-09-15",
                    "d charge 5 54950 -", "e charge 3 32970 -", "e refund 1 -10990 2024-08-20",
                    // Apple does not state what it gave back of the month.
                    "f charge 4 272970 -", "f proration 1 - -", "g charge 12 131880 -",
                ])
            try await test.expectSound()
        }
    }
}
