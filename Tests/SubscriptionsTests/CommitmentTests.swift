import Testing

@testable import Subscriptions

/// The life of a term of twelve payments at 10.99 a month, bought on 8 June 2026; one payment fails and is made twelve days
/// later, so that everything after it moves by twelve days.
@Suite("A term of payments is told row by row") struct CommitmentTests {
    private func at(_ day: String) throws -> Instant {
        try #require(Instant(iso8601: day + "T00:00:00.000Z"))
    }

    /// Purchase and expiry of each payment, by its number less one.
    private static let payments = [
        ("2026-06-08", "2026-07-08"), ("2026-07-08", "2026-08-08"), ("2026-08-08", "2026-09-08"),
        ("2026-09-08", "2026-10-08"), ("2026-10-08", "2026-11-08"), ("2026-11-20", "2026-12-20"),
        ("2026-12-20", "2027-01-20"), ("2027-01-20", "2027-02-20"), ("2027-02-20", "2027-03-20"),
        ("2027-03-20", "2027-04-20"), ("2027-04-20", "2027-05-20"), ("2027-05-20", "2027-06-20"),
    ]

    private func payment(_ number: Int, refunded: String? = nil, upgraded: Bool = false) throws -> TransactionRow {
        let (from, to) = Self.payments[number - 1]
        var row = row("\(number)", 0, 1, product: "yearly", upgraded: upgraded)
        (row.purchasedAt, row.expiresAt) = (try at(from), try at(to))
        row.ownership = .purchased
        row.cancelledAt = try refunded.map(at)
        row.sale = Sale(
            plan: Sale.monthly,
            payment: Sale.Payment(
                number: number, total: 12, termEndsAt: try at(number < 6 ? "2027-06-08" : "2027-06-20")),
            revocationType: refunded.map { _ in "REFUND_FULL" })
        return row
    }

    /// What follows the twelfth payment: another payment of a new term, or a year that is paid at once.
    private func following(_ plan: String) throws -> TransactionRow {
        var row = row("13", 0, 1, product: "yearly")
        let isMonthly = plan == Sale.monthly
        (row.purchasedAt, row.expiresAt) = (try at("2027-06-20"), try at(isMonthly ? "2027-07-20" : "2028-06-20"))
        row.sale = Sale(
            plan: plan,
            payment: isMonthly ? Sale.Payment(number: 1, total: 12, termEndsAt: try at("2028-06-20")) : nil)
        return row
    }

    /// What is said of the renewal: Apple's status, and the customer's will about the next term where one runs.
    private func renewal(
        _ tries: Bool, _ renews: Bool?, retry: Bool? = nil, intent: String? = nil, to product: ProductID = "yearly",
        plan: String = Sale.monthly
    ) -> Renewal {
        Renewal(
            productID: "yearly", renewsToProductID: "yearly", willRenew: tries, expirationIntent: intent,
            inBillingRetry: retry,
            term: renews.map { TermWill(renews: $0, productID: product, plan: plan) } ?? TermWill())
    }

    private func said(_ day: String, _ rows: [TransactionRow], _ renewal: Renewal) throws -> SubscriptionEvidence {
        let instant = try at(day) + Delay.minutes(1)
        return SubscriptionEvidence(
            originalTransactionID: subscriptionID, asOf: instant,
            transactions: rows.map { row in
                var row = row
                row.asOf = instant
                return row
            },
            renewals: [
                RenewalRow(
                    path: "statuses.data[0].lastTransactions[0].signedRenewalInfo", asOf: instant,
                    originalTransactionID: subscriptionID, renewal: renewal)
            ])
    }

    /// State, next payment, next term, payment, events.
    private func line(_ state: SubscriptionState, _ events: [Event]) -> String {
        let span = state.timeline.span(at: state.asOf)
        func word(_ flag: Bool?) -> String { flag.map { $0 ? "y" : "n" } ?? "-" }
        let reason = span?.reason.map { "/\($0.rawValue)" } ?? ""
        let number = state.sale.paymentNumber.map { " \($0)" } ?? ""
        return "\(span?.state.rawValue ?? "")\(reason) \(word(state.nextPayment))/\(word(state.willRenew))\(number) "
            + events.map(\.kind.rawValue).joined(separator: " ")
    }

    private func rows(_ last: Int, refunded: [Int: String] = [:]) throws -> [TransactionRow] {
        try (1...last).map { try payment($0, refunded: refunded[$0]) }
    }

    /// The first eleven months, to which every ending is added.
    private func year() throws -> [(SubscriptionEvidence, String)] {
        let money = [2: "2026-09-15"]
        return [
            (try said("2026-06-08", rows(1), renewal(true, true)), "active y/y 1 subscription.started"),
            (try said("2026-07-08", rows(2), renewal(true, true)), "active y/y 2 subscription.renewed"),
            (try said("2026-08-08", rows(3), renewal(true, true)), "active y/y 3 subscription.renewed"),
            (try said("2026-08-20", rows(3), renewal(true, false)), "active y/n 3 auto_renew.disabled"),
            (try said("2026-09-08", rows(4), renewal(true, false)), "active y/n 4 subscription.renewed"),
            (try said("2026-09-15", rows(4, refunded: money), renewal(true, false)), "active y/n 4 refund.granted"),
            (
                try said("2026-10-08", rows(5, refunded: money), renewal(true, false)),
                "active y/n 5 subscription.renewed"
            ),
            (
                try said("2026-11-08", rows(5, refunded: money), renewal(true, false, retry: true, intent: "2")),
                "billing_retry y/n 5 billing.retry_entered"
            ),
            (
                try said("2026-11-20", rows(6, refunded: money), renewal(true, false)),
                "active y/n 6 subscription.recovered"
            ),
            (
                try said("2026-12-20", rows(7, refunded: money), renewal(true, false)),
                "active y/n 7 subscription.renewed"
            ),
            (
                try said("2027-01-05", rows(7, refunded: money), renewal(true, true)),
                "active y/y 7 auto_renew.enabled"
            ),
            (
                try said("2027-01-20", rows(8, refunded: money), renewal(true, true)),
                "active y/y 8 subscription.renewed"
            ),
            (
                try said("2027-02-20", rows(9, refunded: money), renewal(true, true)),
                "active y/y 9 subscription.renewed"
            ),
            (
                try said("2027-03-20", rows(10, refunded: money), renewal(true, true)),
                "active y/y 10 subscription.renewed"
            ),
            (
                try said("2027-04-20", rows(11, refunded: money), renewal(true, true)),
                "active y/y 11 subscription.renewed"
            ),
            (
                try said("2027-05-20", rows(12, refunded: money), renewal(true, true)),
                "active y/y 12 subscription.renewed"
            ),
        ]
    }

    private func expect(_ story: [(SubscriptionEvidence, String)], sourceLocation: SourceLocation = #_sourceLocation) {
        var state: SubscriptionState?
        for (evidence, expected) in story {
            let reconciled = reconcile(state, with: evidence, policy: standardPolicy)
            state = reconciled.state
            #expect(
                line(reconciled.state, reconciled.events) == expected, "\(evidence.asOf.iso8601)",
                sourceLocation: sourceLocation)
        }
    }

    @Test("The twelve payments: a cancellation, a refund, a failed payment and a change of mind")
    func term() throws { expect(try year()) }

    @Test("Month 13: the term renews, becomes a year paid at once, or ends")
    func monthThirteen() throws {
        let all = try rows(12, refunded: [2: "2026-09-15"])
        expect(
            try year() + [
                (
                    said("2027-06-20", all + [following(Sale.monthly)], renewal(true, true)),
                    "active y/y 1 subscription.renewed"
                )
            ])
        expect(
            try year() + [
                (
                    said("2027-06-20", all + [following(Sale.upfront)], renewal(true, nil)),
                    "active y/y subscription.renewed"
                )
            ])
        expect(
            try year() + [
                (said("2027-06-01", all, renewal(false, false)), "active n/n 12 auto_renew.disabled"),
                (
                    said("2027-06-20", all, renewal(false, nil, retry: false, intent: "1")),
                    "expired/voluntary n/n 12 subscription.expired"
                ),
            ])
    }

    @Test("A payment that stays unpaid for 90 days ends the term, and is asked about for 95 days")
    func unpaid() throws {
        let failed = try said("2026-11-08", rows(5), renewal(true, true, retry: true, intent: "2"))
        expect([
            (try said("2026-10-08", rows(5), renewal(true, true)), "active y/y 5 subscription.started"),
            (failed, "billing_retry y/y 5 billing.retry_entered"),
            (
                try said("2027-02-06", rows(5), renewal(false, nil, retry: false, intent: "2")),
                "expired/billing_error n/n 5 subscription.expired auto_renew.disabled"
            ),
        ])
        let state = reconcile(nil, with: failed, policy: standardPolicy).state
        for (day, isAsked) in [(70.0, true), (94, true), (96, false)] {
            let now = try at("2026-11-08") + Delay(milliseconds: Int64(day * 86_400_000))
            guard
                case .at(let next) = nextCheck(
                    for: [state], environment: .production, outcome: .verified, now: now, seed: 1,
                    policy: standardPolicy)
            else {
                Issue.record("no check is planned on day \(day)")
                continue
            }
            #expect((next - now <= Delay.days(3)) == isAsked, "day \(day): \(next.iso8601)")
        }
    }

    @Test("A payment that fails before its month ends keeps the month, and gets no leeway and no allowance")
    func failedAhead() throws {
        let paid = (try said("2026-10-08", rows(5), renewal(true, true)), "active y/y 5 subscription.started")
        let failed = renewal(true, true, retry: true, intent: "2")
        let ahead = try said("2026-11-07", rows(5), failed)
        let story = [
            paid, (ahead, "active y/y 5 "),
            (try said("2026-11-08", rows(5), failed), "billing_retry y/y 5 billing.retry_entered"),
            (try said("2026-11-20", rows(6), renewal(true, true)), "active y/y 6 subscription.recovered"),
        ]
        expect(story)
        // What Apple no longer states holds no longer.
        let denied = try said("2026-11-08", rows(5), renewal(true, true))
        expect([paid, (ahead, "active y/y 5 "), (denied, "awaiting_renewal/renewal y/y 5 ")])
        let end = try at("2026-11-08")
        var yearly = try rows(5)
        yearly[4].sale = nil
        for (evidence, isOver) in [
            (ahead, true), (try said("2026-11-06", rows(5), failed), false),
            (try said("2026-11-07", rows(5), renewal(true, true, retry: true, intent: "1")), true),
            (try said("2026-11-07", rows(5), renewal(true, true, intent: "1")), false),
            (try said("2026-11-07", yearly, failed), false),
        ] {
            let state = reconcile(nil, with: evidence, policy: standardPolicy).state
            let (before, after) = (state.timeline.span(at: end - .minutes(1)), state.timeline.span(at: end))
            #expect(before?.state == .active && before?.entitledUntil == end)
            #expect(after?.entitled == !isOver && state.outageAllowance.accessEndsAt == (isOver ? end : after?.to))
            #expect(state.outageAllowance.expected == !isOver, "\(evidence.asOf.iso8601)")
            #expect(state.outageAllowance.allowanceEnd(policy: standardPolicy) == nil || !isOver)
        }
    }

    @Test("What Apple gives up is over: no will of the ended term counts, whatever it goes on to say")
    func givenUp() throws {
        let failed = try said("2026-11-08", rows(5), renewal(true, true, retry: true, intent: "2"))
        for (tries, renews) in [(true, true), (true, false), (false, true)] {
            expect([
                (failed, "billing_retry y/y 5 subscription.started"),
                (
                    try said("2027-02-07", rows(5), renewal(tries, renews, retry: false, intent: "2")),
                    "expired/billing_error n/n 5 subscription.expired auto_renew.disabled"
                ),
            ])
        }
        // Silence is no end: the next payment is still expected.
        expect([
            (try said("2026-10-08", rows(5), renewal(true, true)), "active y/y 5 subscription.started"),
            (try said("2026-11-09", rows(5), renewal(true, true)), "expired/unknown y/y 5 subscription.expired"),
        ])
    }

    @Test("The refund of the current payment ends the term, and an upgrade replaces it")
    func ended() throws {
        var current = try rows(3)
        current[2] = try payment(3, refunded: "2026-08-20")
        expect(
            try Array(year().prefix(3)) + [
                (
                    said("2026-08-20", current, renewal(false, nil, intent: "1")),
                    "revoked/refund n/n refund.granted auto_renew.disabled"
                )
            ])
        current[2] = try payment(3, refunded: "2026-08-20", upgraded: true)
        var higher = row("h", 0, 1, product: "higher")
        (higher.purchasedAt, higher.expiresAt) = (try at("2026-08-20"), try at("2026-09-20"))
        var other = renewal(true, nil)
        (other.productID, other.renewsToProductID) = ("higher", "higher")
        expect(
            try Array(year().prefix(3)) + [
                (said("2026-08-20", current + [higher], other), "active y/y product.changed")
            ])
    }

    @Test("A cancellation says when it takes effect; so do another product and another plan")
    func takesEffect() throws {
        var state = reconcile(nil, with: try said("2026-06-08", rows(1), renewal(true, true)), policy: standardPolicy)
            .state
        func next(_ day: String, _ said: Renewal) throws -> [Event] {
            let reconciled = reconcile(state, with: try self.said(day, rows(1), said), policy: standardPolicy)
            state = reconciled.state
            return reconciled.events
        }
        let ends = DetailValue.text("2027-06-08T00:00:00.000Z")
        let off = try next("2026-06-10", renewal(true, false))
        #expect(off.map(\.kind) == [.autoRenewDisabled] && off[0].detail["takes_effect_at"] == ends)
        #expect(state.nextPayment == true && state.willRenew == false && state.renewsToProductID == nil)
        #expect(state.outageAllowance.expected, "the next payment is expected")
        let on = try next("2026-06-11", renewal(true, true))
        #expect(on.map(\.kind) == [.autoRenewEnabled] && on[0].detail["takes_effect_at"] == nil)
        let product = try next("2026-06-12", renewal(true, true, to: "monthly"))
        #expect(product.map(\.kind) == [.productChangeScheduled] && product[0].detail["takes_effect_at"] == ends)
        #expect(product[0].detail["to_product_id"] == .text("monthly") && state.renewsToProductID == "monthly")
        #expect(state.timeline.span(at: state.asOf)?.flags == [.changeScheduled])
        #expect(try next("2026-06-13", renewal(true, true)).map(\.kind) == [.productChangeWithdrawn])
        let plan = try next("2026-06-14", renewal(true, true, plan: Sale.upfront))
        #expect(plan.map(\.kind) == [.productChangeScheduled] && plan[0].detail["to_plan"] == .text("upfront"))
        let withdrawn = try next("2026-06-15", renewal(true, true))
        #expect(
            withdrawn.map(\.kind) == [.productChangeWithdrawn] && withdrawn[0].detail["to_plan"] == .text("upfront"))
    }

    @Test("Another plan takes the place of another product, and the reverse; what is withdrawn was scheduled")
    func replacedChanges() throws {
        let wishes = [
            renewal(true, true), renewal(true, true, to: "monthly"), renewal(true, true, plan: Sale.upfront),
            renewal(true, true, to: "weekly"), renewal(true, true, plan: "BY_MOON"),
        ]
        for second in wishes.indices {
            for third in wishes.indices {
                var state = reconcile(
                    nil, with: try said("2026-06-08", rows(1), renewal(true, true)), policy: standardPolicy
                ).state
                var pending: [DetailValue?]?
                for (day, wish) in zip(["2026-06-10", "2026-06-11", "2026-06-12"], [second, third, 0]) {
                    let evidence = try said(day, rows(1), wishes[wish])
                    let reconciled = reconcile(state, with: evidence, policy: standardPolicy)
                    state = reconciled.state
                    for event in reconciled.events {
                        let change = [event.detail["to_product_id"], event.detail["to_plan"]]
                        if event.kind == .productChangeScheduled {
                            #expect(pending != change, "\(second) \(third)")
                            pending = change
                        } else {
                            #expect(event.kind == .productChangeWithdrawn && pending == change, "\(second) \(third)")
                            pending = nil
                        }
                    }
                    let flags = state.timeline.span(at: state.asOf)?.flags ?? []
                    #expect(flags.contains(.changeScheduled) == (pending != nil), "\(second) \(third) \(day)")
                    #expect((pending != nil) == [1, 2, 3].contains(wish), "\(second) \(third) \(day)")
                }
            }
        }
    }

    @Test("A plan that is not known is no change of plan")
    func unknownPlan() throws {
        var unknown = try rows(1)
        unknown[0].sale?.plan = "WEEKLY"
        let first = reconcile(nil, with: try said("2026-06-08", rows(1), renewal(true, true)), policy: standardPolicy)
        let next = reconcile(
            first.state, with: try said("2026-06-09", unknown, renewal(true, true)), policy: standardPolicy)
        #expect(next.events == [] && next.state.sale.plan == nil)
        #expect(next.state.timeline.span(at: next.state.asOf)?.flags == [])
    }

    @Test("The refund of the current payment ends the term, whatever Apple goes on to say of the next payment")
    func refundedStatus() throws {
        var current = try rows(3)
        current[2] = try payment(3, refunded: "2026-08-20")
        for (will, word) in [(true, "y"), (false, "n"), (nil, "n")] as [(Bool?, String)] {
            let evidence = try said("2026-08-20", current, renewal(true, will))
            let before = reconcile(
                nil, with: try said("2026-08-08", rows(3), renewal(true, true)), policy: standardPolicy)
            let after = reconcile(before.state, with: evidence, policy: standardPolicy)
            #expect(
                line(after.state, after.events).hasPrefix("revoked/refund n/\(word) "), "\(after.events.map(\.kind))")
            #expect(after.events.map(\.kind).contains(.autoRenewDisabled) == (after.state.willRenew == false))
            // A number that cannot be read does not make it another plan.
            var unread = current
            unread[2].sale?.payment = nil
            let same = reconcile(
                before.state, with: try said("2026-08-20", unread, renewal(true, will)), policy: standardPolicy)
            #expect(same.state.nextPayment == false && same.state.willRenew == after.state.willRenew)
            #expect(same.events.map(\.kind) == after.events.map(\.kind))
            #expect((after.events + same.events).allSatisfy { $0.detail["takes_effect_at"] == nil })
        }
    }

    @Test("A payment that was made late proves the retry that was not seen")
    func recoveredUnseen() throws {
        let paid = try said("2026-10-20", rows(5), renewal(true, true))
        let failed = try said("2026-11-08", rows(5), renewal(true, true, retry: true, intent: "2"))
        let recovered = try said("2026-11-21", rows(6), renewal(true, true))
        let seen = try #require(settle([paid, failed, recovered]).state)
        for story in [[recovered], [paid, recovered], [recovered, paid]] {
            #expect(settle(story).state?.timeline == seen.timeline)
        }
        #expect(
            kinds(settle([paid, recovered]).events)
                == ["subscription.started", "billing.retry_entered subscription.recovered"])
        #expect(kinds(settle([recovered]).events) == ["subscription.started"])
    }

    @Test("Only consecutive payments of one term prove it, and only a payment after the leeway")
    func proof() throws {
        let hour = 1.0 / 24
        func term(_ number: Int?, _ from: Double, product: ProductID = "yearly", total: Int = 12) -> TransactionRow {
            var row = SubscriptionsTests.row("\(from)", from, from + 30, product: product)
            let payment = number.map { Sale.Payment(number: $0, total: total, termEndsAt: day(400)) }
            row.sale = Sale(plan: Sale.monthly, payment: payment)
            return row
        }
        let plain = row("90", 90, 120, product: "yearly")
        let first = [term(1, 0), term(2, 30)]
        var gaps: [(Double, TransactionRow, State)] = []
        let late: [(Double, State)] = [
            (hour, .awaitingRenewal), (2 * hour, .awaitingRenewal), (2.1 * hour, .billingRetry), (12, .billingRetry),
            (95, .billingRetry),
        ]
        for (gap, state) in late { gaps.append((gap, term(3, 60 + gap), state)) }
        let others: [TransactionRow] = [
            term(4, 90), term(1, 90), term(2, 90), term(nil, 90), term(3, 90, product: "other"), term(3, 90, total: 6),
            plain,
        ]
        for other in others { gaps.append((30, other, .expired)) }
        for (gap, next, expected) in gaps {
            let told = answer(60 + gap + 1, first + [next], SubscriptionsTests.renewal(product: "yearly"))
            let state = try #require(settle([told]).state)
            let span = state.timeline.span(at: day(60 + gap / 2))
            #expect(span?.state == expected, "\(gap) \(drawing(state.timeline))")
            #expect(span?.entitled == (expected == .awaitingRenewal))
        }
        // What was refunded before it began was no payment.
        var gone = term(3, 90)
        gone.cancelledAt = day(80)
        let none = settle([answer(100, first + [gone], SubscriptionsTests.renewal(product: "yearly"))]).state
        #expect(none?.timeline.span(at: day(70))?.state == .expired)
    }

    @Test("What begins after the end of a term was bought: after a refund, after Apple gave up, or as another term")
    func boughtAgain() throws {
        func again(_ from: String, number: Int = 1) throws -> TransactionRow {
            var row = try following(Sale.monthly)
            let start = try at(from)
            (row.purchasedAt, row.expiresAt) = (start, start + .days(30))
            row.sale?.payment = Sale.Payment(number: number, total: 12, termEndsAt: start + .days(365))
            return row
        }
        let before = try said("2026-08-08", rows(3), renewal(true, true))
        var refunded = try rows(3)
        refunded[2] = try payment(3, refunded: "2026-08-20")
        for (tries, renews) in [(true, true), (true, false), (false, false), (true, nil)] as [(Bool, Bool?)] {
            let end = try said("2026-08-21", refunded, renewal(tries, renews))
            for day in ["2026-08-23", "2026-09-20", "2026-11-01"] {
                let back = try said(day, refunded + [again(day)], renewal(true, true))
                for story in [[before, end, back], [before, back], [end, back]] {
                    let (state, events) = settle(story)
                    #expect(events.last?.map(\.kind).contains(.subscriptionReactivated) == true, "\(day)")
                    #expect(
                        !kinds(events).joined().contains("recovered") && !kinds(events).joined().contains("enabled"))
                    #expect(state?.facts.renewals(by: standardPolicy).last == false, "\(day)")
                }
            }
        }
        // At once, too: its access had ended.
        var soon = try again("2026-08-20")
        soon.purchasedAt = soon.purchasedAt + .minutes(10)
        let end = try said("2026-08-20", refunded, renewal(true, true))
        #expect(
            settle([before, end, try said("2026-08-21", refunded + [soon], renewal(true, true))]).events.last?
                .map(\.kind) == [.subscriptionReactivated])
        let failed = try said("2026-11-08", rows(5), renewal(true, true, retry: true, intent: "2"))
        let gaveUp = try said("2026-12-01", rows(5), renewal(true, true, retry: false, intent: "2"))
        for (story, number, kind) in [
            ([failed, gaveUp], 1, EventKind.subscriptionReactivated), ([failed], 1, .subscriptionReactivated),
            ([failed], 6, .subscriptionRecovered), ([failed, gaveUp], 6, .subscriptionRecovered),
        ] {
            let back = try said("2026-12-10", rows(5) + [again("2026-12-10", number: number)], renewal(true, true))
            let (state, events) = settle(story + [back])
            #expect(events.last?.map(\.kind).contains(kind) == true, "\(number) \(kinds(events))")
            #expect(state?.facts.renewals(by: standardPolicy).last == (kind == .subscriptionRecovered))
        }
        // The refund of an earlier payment ends nothing.
        let late = try said("2026-11-21", rows(6, refunded: [5: "2026-11-20"]), renewal(true, true))
        #expect(settle([failed, late]).events.last?.map(\.kind).contains(.subscriptionRecovered) == true)
    }

    @Test("verifyReceipt says nothing of a term, and takes no will away")
    func otherChannel() throws {
        let state = reconcile(nil, with: try said("2026-06-08", rows(1), renewal(true, false)), policy: standardPolicy)
            .state
        var bare = try rows(1)
        bare[0].sale = nil
        let receipt = Renewal(productID: "yearly", renewsToProductID: "yearly", willRenew: true)
        let next = reconcile(state, with: try said("2026-06-20", bare, receipt), policy: standardPolicy)
        #expect(next.events == [] && next.state.willRenew == false && next.state.sale.paymentNumber == 1)
    }

    @Test("Facts are restored from their records, and merging them is commutative and idempotent")
    func records() throws {
        let story = try year().map(\.0)
        for evidence in story {
            let facts = SubscriptionFacts(evidence)
            let restored = SubscriptionFacts(
                originalTransactionID: subscriptionID, asOf: facts.asOf, records: facts.records, renewal: facts.renewal)
            #expect(restored == facts)
            for other in story {
                let (left, right) = (facts.adding(other), SubscriptionFacts(other).adding(evidence))
                #expect(left == right && left.adding(evidence) == left)
            }
        }
    }
}
