import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("What is stated of a sale is stored, counted as money once, and read back")
struct SaleSettleTests {
    private func said(
        _ answer: Answer, _ sales: [Sale], price: Int64 = 10_990, term: TermWill? = nil, tries: Bool = true
    ) -> Finding {
        var evidence = answer.evidence
        for index in evidence.transactions.indices {
            evidence.transactions[index].sale = sales[index]
            evidence.transactions[index].price = Price(milliunits: price, currency: "EUR")
            evidence.transactions[index].quantity = sales[index].seats?.count ?? 1
        }
        evidence.renewals[0].renewal.term = term
        evidence.renewals[0].renewal.willRenew = tries
        return .verified(evidence)
    }

    @Test("A term: two wills, the newest payment, the money of each payment, and no news from the same answer")
    func term() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let answer = Answer(from: test.at(-40), periods: 2, asOf: test.at(-1))
            let sales = (1...2).map { number in
                Sale(
                    plan: Sale.monthly,
                    payment: Sale.Payment(number: number, total: 12, termEndsAt: test.at(320), termPrice: 131_880))
            }
            let will = TermWill(renews: false, productID: "monthly", plan: Sale.monthly)
            let first = try await test.check(receipt, said(answer, sales, term: will))
            #expect(first.outcome == .verified)
            try await test.expectRows(
                """
                SELECT plan, payment_number, payments, commitment_ends_at = $1::timestamptz AS ends, next_payment, will_renew,
                       seats
                FROM perennial.subscription_now
                """, with: [.instant(test.at(320))], [["monthly", 2, 12, true, true, false, nil]])
            try await test.expectRows(
                "SELECT kind, amount_milliunits FROM perennial.revenue_event ORDER BY occurred_at",
                [["charge", 10_990], ["charge", 10_990]])
            let again = try await test.check(
                receipt, said(answer.but { $0.asOf = test.at(-0.5) }, sales, term: will))
            #expect(again.subscriptions.allSatisfy { $0.events.isEmpty })
            let enabled = try await test.check(
                receipt,
                said(
                    answer.but { $0.asOf = test.at(-0.25) }, sales,
                    term: TermWill(renews: true, productID: "monthly", plan: Sale.monthly)))
            #expect(enabled.subscriptions.flatMap(\.events).map(\.kind) == [.autoRenewEnabled])
            // An answer of verifyReceipt says nothing of either.
            let bare = try await test.check(receipt, answer.but { $0.asOf = test.at(-0.1) })
            #expect(bare.subscriptions.allSatisfy { $0.events.isEmpty })
            try await test.expectRows(
                "SELECT plan, payment_number, next_payment, will_renew FROM perennial.subscription_now",
                [["monthly", 2, true, true]])
            try await test.expectSound()
        }
    }

    @Test("A group: refunded seats are money back, its access stays, and a member pays nothing")
    func seats() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let answer = Answer(from: test.at(-10), asOf: test.at(-9))
            try await test.check(receipt, said(answer, [Sale(seats: Sale.Seats(count: 7))], price: 7_000))
            let refund = answer.but { $0.asOf = test.at(-1) }
            let refunded = try await test.check(
                receipt, said(refund, [Sale(seats: Sale.Seats(count: 7, revoked: 2))], price: 7_000))
            #expect(refunded.subscriptions.allSatisfy { $0.events.isEmpty && $0.verdict.entitled })
            try await test.expectRows("SELECT seats, entitled FROM perennial.subscription_now", [[5, true]])
            try await test.expectRows(
                "SELECT kind, amount_milliunits FROM perennial.revenue_event ORDER BY occurred_at",
                [["charge", 7_000], ["refund", -2_000]])
            let member = Answer(from: test.at(-10), asOf: test.at(-1)).but {
                ($0.subscription, $0.shared, $0.line) = ("2000", true, "m")
            }
            try await test.check(
                try await test.upload("m", by: "bob"), said(member, [Sale(seats: Sale.Seats(count: 7))], price: 7_000))
            try await test.expectRows(
                "SELECT original_transaction_id, seats, entitled FROM perennial.subscription_now ORDER BY 1",
                [["1000", 5, true], ["2000", nil, true]])
            try await test.expectRows("SELECT count(*) AS lines FROM perennial.revenue_event", [[2]])
            try await test.expectSound()
        }
    }

    @Test("Seats that come back twice are two refunds, each when it was learnt; the refund of all is the rest")
    func refundedTwice() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let answer = Answer(from: test.at(-10), asOf: test.at(-9))
            func back(_ seats: Int, asOf: Double, _ change: (inout Answer) -> Void = { _ in }) async throws {
                let sale = Sale(seats: Sale.Seats(count: 6, revoked: seats))
                let said = answer.but {
                    $0.asOf = test.at(asOf)
                    change(&$0)
                }
                try await test.check(receipt, self.said(said, [sale], price: 29_442))
            }
            func refunds(knownAt known: Instant? = nil) async throws -> [[Cell]] {
                try await test.database.cells(
                    """
                    SELECT amount_milliunits, recorded_at, occurred_at = recorded_at AS at_once
                    FROM perennial.revenue_as_known(COALESCE($1::timestamptz, now()))
                    WHERE kind = 'refund' ORDER BY occurred_at DESC
                    """, [.instant(known)])
            }
            try await back(0, asOf: -9)
            try await back(2, asOf: -5)
            let first = try await refunds()
            let between = try await test.betweenChanges()
            #expect(first.map { $0[0] } == [-9_814] && first.first?.last == true)
            try await back(3, asOf: -4)
            let second = try await refunds()
            #expect(second.map { $0[0] } == [-4_907, -9_814] && Array(second.dropFirst()) == first)
            try await back(2, asOf: -3)
            #expect(try await refunds() == second, "one answer takes nothing back")
            try await test.expectRows("SELECT seats FROM perennial.subscription_now", [[3]])
            try await back(2, asOf: -2.9)
            #expect(try await refunds() == first, "one refund was taken back")
            try await back(3, asOf: -2)
            try await back(6, asOf: -1) { $0.refunded = (0, test.at(-1.5)) }
            let all = try await refunds()
            #expect(all.map { $0[0] } == [-4_907, -9_814, -14_721] && Array(all.prefix(2)) == second)
            #expect(all.last?.last == false)
            #expect(try await refunds(knownAt: between) == first, "what was known stays")
            try await test.expectSound()
        }
    }

    @Test("A group's term goes on, and is told, where seats that were added are refunded as a whole")
    func groupTerm() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            func pair(refunded: Int?, asOf: Double) -> Finding {
                var evidence = Answer(from: test.at(-10), asOf: test.at(asOf)).evidence
                evidence.transactions.append(evidence.transactions[0])
                for index in 0...1 {
                    let seats = [6, 3][index]
                    evidence.transactions[index].webOrderLineItemID = nil
                    evidence.transactions[index].transactionID = TransactionID("t\(index)")
                    evidence.transactions[index].quantity = seats
                    evidence.transactions[index].cancelledAt = index == refunded ? test.at(-5) : nil
                    evidence.transactions[index].sale = Sale(
                        plan: Sale.monthly, payment: Sale.Payment(number: 3, total: 12, termEndsAt: test.at(260)),
                        seats: Sale.Seats(count: seats, revoked: index == refunded ? seats : 0), isOneOfSeveral: true)
                    evidence.transactions[index].price = Price(milliunits: Int64(seats) * 10_990, currency: "EUR")
                }
                evidence.renewals[0].renewal.term = TermWill(renews: true, productID: "monthly", plan: Sale.monthly)
                return .verified(evidence)
            }
            for (refunded, asOf, seats) in [(nil, -6.0, 9), (1, -4, 6)] as [(Int?, Double, Int)] {
                try await test.check(receipt, pair(refunded: refunded, asOf: asOf))
                try await test.expectRows(
                    """
                    SELECT s.plan, s.payment_number, s.payments, s.commitment_ends_at = $1::timestamptz AS ends,
                           s.next_payment, s.will_renew, s.seats, r.is_within_term
                    FROM perennial.subscription_now s JOIN perennial.renewal_now r USING (original_transaction_id)
                    """, with: [.instant(test.at(260))], [["monthly", 3, 12, true, true, true, .count(seats), true]])
            }
            let unread = EvidenceReader(answer: { _ in nil }, notification: { _ in nil })
            let reasons = try await test.ledger.customers.reasons(
                app: test.app.bundleID, customer: "ann", at: nil, reading: unread)
            let text = CustomerExplanation(reasons).text
            #expect(
                text.contains("Paid: payment 3 of 12 of a term until \(test.at(260).iso8601), 6 seats."), "\(text)")
            try await test.expectRows(
                """
                SELECT kind, monthly_milliunits FROM perennial.mrr_movement_as_known('infinity', 'UTC')
                WHERE day <= now() ORDER BY day
                """, [["new", 98_910], ["contraction", -32_970]])
            try await test.expectSound()
        }
    }

    @Test("An amount that is not known stays so in what was known before")
    func unknownBefore() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let answer = Answer(from: test.at(-10), asOf: test.at(-9))
            var finding = said(answer.but { $0.refunded = (0, test.at(-9.5)) }, [Sale()])
            guard case .verified(var evidence) = finding else { return }
            evidence.transactions[0].cancellationReason = "7"
            finding = .verified(evidence)
            try await test.check(receipt, finding)
            let standing = "SELECT state, reason FROM perennial.subscription_now"
            try await test.expectRows(standing, [["revoked", "other"]])
            let before = try await test.betweenChanges()
            let again = answer.but {
                $0.asOf = test.at(-8)
                $0.refunded = (0, test.at(-9.5))
            }
            try await test.check(receipt, said(again, [Sale()]))
            try await test.expectRows(standing, [["revoked", "refund"]])
            let sql = "SELECT amount_milliunits FROM perennial.revenue_as_known($1::timestamptz) WHERE kind = 'refund'"
            try await test.expectRows(sql, with: [.instant(before)], [[nil]])
            try await test.expectRows(sql, with: [.instant(try await test.ledger.now())], [[-10_990]])
        }
    }

    @Test("Seats that were bought at one instant count together, and no price is made of one that cannot be read")
    func unreadable() async throws {
        try await withLedger { test in
            try await test.sell([
                CatalogProduct(
                    id: "monthly", period: "P1M", priceMilliunits: 4_990, currency: "EUR", entitlements: ["all"])
            ])
            let receipt = try await test.upload("a")
            let answer = Answer(from: test.at(-10), asOf: test.at(-9))
            func pair(_ prices: [Int64?], asOf: Double) -> Finding {
                var evidence = answer.but { $0.asOf = test.at(asOf) }.evidence
                evidence.transactions.append(evidence.transactions[0])
                for index in 0...1 {
                    evidence.transactions[index].webOrderLineItemID = nil
                    evidence.transactions[index].transactionID = TransactionID("t\(index)")
                    evidence.transactions[index].quantity = [6, 3][index]
                    evidence.transactions[index].sale = Sale(
                        seats: Sale.Seats(count: [6, 3][index]), isOneOfSeveral: true)
                    evidence.transactions[index].price = Price(milliunits: prices[index], currency: "EUR")
                }
                return .verified(evidence)
            }
            let money = "SELECT amount_milliunits, currency, price_basis FROM perennial.revenue_event ORDER BY 1"
            try await test.check(receipt, pair([29_940, 14_970], asOf: -9))
            try await test.expectRows("SELECT seats, periods FROM perennial.subscription_now", [[9, 2]])
            try await test.expectRows(money, [[14_970, "EUR", "apple"], [29_940, "EUR", "apple"]])
            try await test.check(receipt, pair([29_940, nil], asOf: -8))
            try await test.expectRows(money, [[29_940, "EUR", "apple"], [nil, nil, "unknown"]])
            try await test.expectRows("SELECT seats, periods FROM perennial.subscription_now", [[9, 2]])
            try await test.expectSound()
        }
    }

    @Test("A group that Apple shows under another id is one: its seats, its money and its start are told once")
    func movedGroup() async throws {
        for isKnownAlone in [false, true] {
            try await withLedger { test in
                let receipt = try await test.upload("a")
                func group(_ id: OriginalTransactionID, _ count: Int = 2, asOf: Double) -> Finding {
                    let answer = Answer(from: test.at(-10), asOf: test.at(asOf)).but { $0.subscription = id }
                    var evidence = answer.evidence
                    let first = evidence.transactions[0]
                    evidence.transactions = (0..<count).map { index in
                        var row = first
                        row.transactionID = TransactionID("t\(index)")
                        row.webOrderLineItemID = count == 1 ? "w" : nil
                        row.quantity = [6, 3][index]
                        row.sale = Sale(seats: Sale.Seats(count: row.quantity), isOneOfSeveral: count > 1)
                        row.price = Price(milliunits: 4_990 * Int64(row.quantity), currency: "EUR")
                        return row
                    }
                    return .verified(evidence)
                }
                try await test.check(receipt, group("1000", isKnownAlone ? 1 : 2, asOf: -9))
                for asOf in [-5.0, -4] {
                    try await test.check(receipt, group("2000", asOf: asOf))
                    try await test.expectRows(
                        """
                        SELECT original_transaction_id, state, entitled, seats FROM perennial.subscription_now ORDER BY 1
                        """, [["1000", "expired", false, nil], ["2000", "active", true, 9]])
                    try await test.expectRows(
                        """
                        SELECT original_transaction_id, kind, amount_milliunits FROM perennial.revenue_event ORDER BY 3
                        """, [["2000", "charge", 14_970], ["2000", "charge", 29_940]])
                }
                let started = "SELECT count(*) AS n FROM ledger.event WHERE kind = 'subscription.started'"
                try await test.expectRows(started, [[1]])
                let found = try await test.violations().map { "\($0)" }
                #expect(found == [])
            }
        }
    }

    @Test("The end of a one-time purchase that another customer made is no refund of it")
    func sharedPurchase() async throws {
        try await withLedger { test in
            try await test.sell()
            let receipt = try await test.upload("a")
            func shared(asOf: Double, revokedAt: Instant? = nil) -> Finding {
                guard
                    case .verified(var evidence) = purchase(
                        "p", at: test.at(-10), asOf: test.at(asOf), refundedAt: revokedAt)
                else { return outage }
                evidence.transactions[0].ownership = .familyShared
                evidence.transactions[0].price = Price(milliunits: nil, currency: "EUR")
                return .verified(evidence)
            }
            try await test.check(receipt, shared(asOf: -9))
            #expect(try await test.entitled("coins") == [true, "coins", "active", nil, "Production", "verified"])
            try await test.check(receipt, shared(asOf: -2, revokedAt: test.at(-3)))
            #expect(
                try await test.entitled("coins") == [false, "coins", "revoked", "family", "Production", "verified"])
            #expect(
                try await test.rows("SELECT kind FROM ledger.event ORDER BY version, ordinal")
                    == ["purchase.made", "ownership.assigned", "family.revoked"])
            let unread = EvidenceReader(answer: { _ in nil }, notification: { _ in nil })
            let reasons = try await test.ledger.customers.reasons(
                app: test.app.bundleID, customer: "ann", at: nil, reading: unread)
            let text = CustomerExplanation(reasons).text
            #expect(text.contains("shares it no longer") && !text.contains("refund"), "\(text)")
            try await test.expectSound()
        }
    }

    @Test("The explanation of a cancelled term says until when the payments go on")
    func explained() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let answer = Answer(from: test.at(-10), asOf: test.at(-1))
            let sale = Sale(
                plan: Sale.monthly, payment: Sale.Payment(number: 4, total: 12, termEndsAt: test.at(260)))
            for (will, words) in [(false, true), (true, false)] {
                let term = TermWill(renews: will, productID: "monthly", plan: Sale.monthly)
                let finding = said(answer.but { $0.asOf = test.at(will ? -0.5 : -1) }, [sale], term: term)
                try await test.check(receipt, finding)
                let unread = EvidenceReader(answer: { _ in nil }, notification: { _ in nil })
                let reasons = try await test.ledger.customers.reasons(
                    app: test.app.bundleID, customer: "ann", at: nil, reading: unread)
                let text = CustomerExplanation(reasons).text
                #expect(
                    text.contains("The customer cancelled; the term ends at \(test.at(260).iso8601)") == words,
                    "\(text)")
                #expect(text.contains("payments go on until then") == words, "\(text)")
                #expect(text.contains("Renewal is switched on.") != words, "\(text)")
                #expect(text.contains("it is expected to renew at") != words, "\(text)")
            }
        }
    }
}
