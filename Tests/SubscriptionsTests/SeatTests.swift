import Testing

@testable import Subscriptions

@Suite("Who did not pay has access, and a group keeps it until its last seat") struct SeatTests {
    private func seats(
        _ name: String, _ from: Double, _ to: Double, _ count: Int, revoked: Int = 0, several: Bool = false,
        cancelled: Double? = nil
    ) -> TransactionRow {
        var row = row(name, from, to, cancelled: cancelled, numbered: !several)
        row.quantity = count
        row.ownership = .purchased
        row.sale = Sale(seats: Sale.Seats(count: count, revoked: revoked), isOneOfSeveral: several)
        return row
    }

    @Test("Added seats are a period beside the first, without an event, and count together")
    func added() {
        let (state, events) = settle([
            answer(1, [seats("1", 0, 30, 7)], renewal()),
            answer(10, [seats("1", 0, 30, 7, several: true), seats("2", 9, 30, 3, several: true)], renewal()),
            answer(
                30.1,
                [
                    seats("1", 0, 30, 7, several: true), seats("2", 9, 30, 3, several: true), seats("3", 30, 60, 10),
                ], renewal()),
        ])
        #expect(kinds(events) == ["subscription.started", "", "subscription.renewed"])
        #expect(state?.periods == 3 && state?.sale.seats == 10)
        #expect(state.map { drawing($0.timeline).hasPrefix("0 active monthly") } == true)
    }

    @Test("Transactions of one period are never one, even where both begin together or lose their line item")
    func apart() {
        let first = answer(1, [seats("1", 0, 30, 7)], renewal())
        let both = answer(10, [seats("1", 0, 30, 7, several: true), seats("2", 9, 30, 3, several: true)], renewal())
        let (forth, _) = settle([first, both])
        let (back, _) = settle([both, first])
        #expect(forth?.periods == 2 && forth?.sale.seats == 10)
        #expect(back?.periods == 2 && back?.sale.seats == 10)
        #expect(forth?.facts.periods.map(\.transactionIDs) == [["t1"], ["t2"]])
    }

    @Test("Seats that were bought at one instant are two periods, in whatever order they are told, and renew as one")
    func together() {
        func pair(_ names: (String, String), _ from: Double, _ to: Double) -> [TransactionRow] {
            [seats(names.0, from, to, 6, several: true), seats(names.1, from, to, 3, several: true)]
        }
        let first = pair(("2", "1"), 0, 30)
        let alone = answer(1, [seats("2", 0, 30, 6)], renewal())
        let stories = [
            [answer(1, first, renewal())], [alone, answer(2, first, renewal())],
            [answer(1, [first[0]], renewal()), answer(2, [first[1]], renewal())],
            [answer(1, [first[1]], renewal()), answer(2, [first[0]], renewal())],
        ]
        for story in stories {
            let (state, events) = settle(story)
            #expect(state?.periods == 2 && state?.sale.seats == 9)
            #expect(kinds(events) == ["subscription.started"] + story.dropFirst().map { _ in "" })
            let again = answer(3, first, renewal())
            #expect(settle(story + [again]).state?.facts.periods.map(\.transactionIDs) == [["t1"], ["t2"]])
        }
        let next = pair(("3", "4"), 30, 60)
        for told in [[next], [[next[0]], next], [[next[1]], next]] {
            let later = told.enumerated().map { answer(30.1 + Double($0.offset), first + $0.element, renewal()) }
            let (state, events) = settle([answer(1, first, renewal())] + later)
            #expect(state?.periods == 4 && state?.sale.seats == 9)
            #expect(
                kinds(events) == ["subscription.started", "subscription.renewed"] + told.dropFirst().map { _ in "" })
        }
    }

    @Test("A group that is replaced is replaced as a whole, when its replacement began")
    func replaced() {
        func group(_ second: Double, replaced: Double? = nil) -> [TransactionRow] {
            [seats("1", 0, 30, 6, several: true), seats("2", second, 30, 3, several: true)].map {
                var row = $0
                (row.isUpgraded, row.cancelledAt) = (replaced != nil, replaced.map(day))
                return row
            }
        }
        for second in [0.0, 9] {
            let higher = row("3", 15, 45, product: "higher")
            let (state, events) = settle([
                answer(10, group(second), renewal()),
                answer(16, group(second, replaced: 15) + [higher], renewal(product: "higher")),
            ])
            #expect(kinds(events) == ["subscription.started", "product.changed"])
            #expect(Replacement.instants(in: state?.facts.periods ?? []) == [day(15), day(15), nil])
            #expect(
                state.map { drawing($0.timeline) }
                    == settle([
                        answer(
                            16, [row("1", 0, 30, cancelled: 15, upgraded: true), higher], renewal(product: "higher"))
                    ])
                    .state.map { drawing($0.timeline) })
        }
    }

    @Test("Refunded seats take no access; the refund of one of two transactions takes none either")
    func refunded() {
        let start = answer(1, [seats("1", 0, 30, 7)], renewal())
        let (some, events) = settle([start, answer(5, [seats("1", 0, 30, 7, revoked: 2)], renewal())])
        #expect(some?.sale.seats == 5 && kinds(events).last == "")
        #expect(some?.timeline.span(at: day(5))?.state == .active)
        let added = seats("2", 9, 30, 3, several: true)
        let base = seats("1", 0, 30, 7, several: true)
        let (one, more) = settle([
            start, answer(10, [base, added], renewal()),
            answer(12, [base, seats("2", 9, 30, 3, revoked: 3, several: true, cancelled: 11)], renewal()),
        ])
        #expect(one?.timeline.span(at: day(12))?.state == .active && one?.sale.seats == 7)
        #expect(kinds(more).last == "refund.granted")
        let (none, _) = settle([
            start, answer(12, [seats("1", 0, 30, 7, revoked: 7, cancelled: 11)], renewal(false)),
        ])
        #expect(none?.timeline.span(at: day(12))?.state == .revoked)
    }

    /// A payment of a group's term: six seats, and three that were added or began with them.
    private func term(_ second: Double, refunded: Int? = nil) -> [TransactionRow] {
        [seats("1", 0, 30, 6, several: true), seats("2", second, 30, 3, several: true)].enumerated().map { index, row in
            var row = row
            row.sale?.plan = Sale.monthly
            row.sale?.payment = Sale.Payment(number: 3, total: 12, termEndsAt: day(330))
            guard index == refunded else { return row }
            row.cancelledAt = day(11)
            let all = row.quantity
            row.sale?.seats?.revoked = all
            return row
        }
    }

    @Test("A term goes on with the seats that are left, and hears what is said about any of its transactions")
    func termGoesOn() throws {
        func will(_ renews: Bool) -> Renewal {
            var said = renewal()
            said.term = TermWill(renews: renews, productID: "monthly", plan: Sale.monthly)
            return said
        }
        for second in [0.0, 9] {
            for refunded in [nil, 0, 1] {
                for named in [[0], [1], [0, 1]] {
                    let rows = term(second, refunded: refunded)
                    let start = answer(10, term(second), will(true))
                    let back = answer(12, rows, will(true))
                    let (state, events) = settle([start, back, answer(14, named.map { rows[$0] }, will(false))])
                    let whose: Comment = "\(second) \(refunded ?? -1) \(named)"
                    let sale = try #require(state?.sale, whose)
                    #expect(sale.plan == "monthly" && sale.paymentNumber == 3 && sale.payments == 12, whose)
                    #expect(sale.termEndsAt == day(330) && sale.seats == [9, 3, 6][(refunded ?? -1) + 1], whose)
                    #expect(state?.willRenew == false && state?.nextPayment == true, whose)
                    #expect(events.last?.map(\.kind) == [.autoRenewDisabled], whose)
                    #expect(events.last?.last?.detail["takes_effect_at"] == .text(day(330).iso8601), whose)
                    #expect(state.map { drawing($0.timeline).hasPrefix("0 active monthly") } == true, whose)
                }
            }
        }
    }

    @Test("What follows a period is told by what was said about any of its transactions")
    func followed() {
        for second in [0.0, 9] {
            for refunded in [nil, 0, 1] {
                for named in [[0], [1], [0, 1]] {
                    func story(_ said: Renewal, until back: Double) -> (events: [String], isRenewal: Bool?) {
                        var rows = term(second, refunded: refunded)
                        for index in rows.indices {
                            rows[index].sale = Sale(seats: rows[index].sale?.seats, isOneOfSeveral: true)
                        }
                        let start = answer(10, rows, renewal())
                        let last = answer(31, named.map { rows[$0] }, said)
                        let next = answer(back + 1, rows + [seats("3", back, back + 30, 6)], renewal())
                        let (state, events) = settle([start, last, next])
                        return (kinds(events), state?.facts.renewals(by: standardPolicy).last)
                    }
                    let whose: Comment = "\(second) \(refunded ?? -1) \(named)"
                    let failed = story(renewal(intent: "2", retry: true), until: 40)
                    #expect(failed.events.suffix(2) == ["billing.retry_entered", "subscription.recovered"], whose)
                    let left = story(renewal(false, intent: "1", retry: false), until: 40)
                    #expect(left.events.last == "subscription.reactivated" && left.isRenewal == false, whose)
                    let soon = story(renewal(intent: "2", retry: true), until: 30.01)
                    #expect(soon.events.last == "subscription.recovered" && soon.isRenewal == true, whose)
                }
            }
        }
    }

    @Test("A share, a seat and an unknown ownership are flagged, and their end is no refund")
    func shared() {
        for (ownership, flag) in [
            (Ownership.familyShared, Flag.familyShared), (.assigned, .assigned), (.unknown("BORROWED"), .assigned),
        ] {
            var row = row("1", 0, 30)
            row.ownership = ownership
            row.sale = Sale(seats: Sale.Seats(count: 7))
            let (state, _) = settle([answer(1, [row], renewal())])
            #expect(state?.timeline.span(at: day(1))?.flags == [flag] && state?.sale.seats == nil)
            #expect(state?.timeline.span(at: day(1))?.entitled == true)
            row.cancelledAt = day(5)
            let (revoked, events) = settle([answer(1, [row], renewal()), answer(6, [row], renewal(false))])
            #expect(revoked?.timeline.span(at: day(6))?.reason == .family)
            #expect(!kinds(events).joined().contains("refund"))
        }
        #expect(Ownership(raw: "ASSIGNED") == .assigned && Ownership.assigned.raw == "ASSIGNED")
    }

    @Test("What Apple took back in words that are not known is revoked, and no refund by its class")
    func unreadRevocation() {
        let table: [(String?, String?, Reason)] = [
            (nil, nil, .refund), (nil, "0", .refund), ("REFUND_FULL", "1", .refund), ("REFUND_PRORATED", "0", .refund),
            ("ADVANCED_COMMERCE", "0", .refund), ("FAMILY_REVOKE", "0", .other), ("REFUND_NEW", "0", .other),
            (nil, "9", .other), ("REFUND_FULL", "9", .other),
        ]
        for (type, reason, expected) in table {
            var row = row("1", 0, 30)
            row.ownership = .purchased
            let start = answer(1, [row], renewal())
            (row.cancelledAt, row.cancellationReason) = (day(5), reason)
            row.sale = Sale(revocationType: type).ifStated
            let (state, events) = settle([start, answer(6, [row], renewal(false))])
            let told = state.map { verdict(of: $0.facts, at: day(6), policy: standardPolicy) }
            #expect(told?.state == .revoked && told?.reason == expected, "\(type ?? "-") \(reason ?? "-")")
            #expect(told?.because.first?.path.hasSuffix("cancellation_date_ms") == true)
            #expect(kinds(events).last == "refund.granted auto_renew.disabled")
            row.ownership = .familyShared
            let shared = settle([answer(6, [row], renewal(false))]).state
            #expect(shared?.timeline.span(at: day(6))?.reason == .family)
        }
    }

    @Test("Who does not pay is in no trial: access begins and ends without one")
    func noTrial() {
        for ownership in [Ownership.familyShared, .assigned, .unknown("LEASED")] {
            var free = row("1", 0, 7, trial: true)
            free.ownership = ownership
            var next = row("2", 7, 37)
            next.ownership = ownership
            let start = answer(1, [free], renewal())
            let (state, began) = settle([start, answer(7.1, [free, next], renewal())])
            #expect(kinds(began) == ["subscription.started", "subscription.renewed"])
            #expect(state?.timeline.spans.contains { $0.flags.contains(.trial) } == false)
            let (_, ended) = settle([start, answer(8, [free], renewal(false, intent: "1", retry: false))])
            #expect(kinds(ended).last == "subscription.expired auto_renew.disabled")
        }
    }
}
