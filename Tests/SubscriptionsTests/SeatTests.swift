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
}
