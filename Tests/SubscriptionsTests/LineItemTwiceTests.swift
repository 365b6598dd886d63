import SeededRandom
import Testing

@testable import Subscriptions

@Suite("A line item that Apple shows under two ids, in one answer or in several, is one charge")
struct LineItemTwiceTests {
    private static let ids: [OriginalTransactionID] = ["1000", "2000"]

    private func bought(_ asOf: Double, of id: Int, _ change: (inout TransactionRow) -> Void = { _ in })
        -> TransactionRow
    {
        var bought = row("9", 10, 40, asOf: asOf, transaction: "t\(Self.ids[id])", of: Self.ids[id])
        bought.ownership = .purchased
        change(&bought)
        return bought
    }

    /// An answer that shows the period under these ids; `known` adds an older period of each id.
    private func shows(_ ids: Set<Int>, minute: Int, known: Bool) -> Evidence {
        let asOf = 11 + Double(minute) / 1_440
        let rows = ids.sorted().map { bought(asOf, of: $0) }
        let old = known ? [0, 1].map { row("old\($0)", -100, -70, asOf: asOf, of: Self.ids[$0]) } : []
        return evidence(asOf, rows + old)
    }

    /// The ids under which the period counts.
    private func holders(_ answers: [Evidence]) -> [Int] {
        let states = foldWhole(answers).states
        return Self.ids.indices.filter { index in
            states[Self.ids[index]]?.facts.periods.contains { $0.webOrderLineItemID == "w9" && $0.movedTo == nil }
                ?? false
        }
    }

    /// Who has the period, by the rules in words.
    private struct Model {
        var holder: Int?
        /// The ids from which it went away, and since when one of them waits to have it back.
        var left: Set<Int> = []
        var waitsSince: Int?
        /// The newest answer that showed it where it is.
        var statedAt = 0

        mutating func hear(_ ids: Set<Int>, minute: Int) {
            // Of two ids the smaller one counts, but not one from which it went away.
            let named = ids.subtracting(left).min() ?? ids.min() ?? 0
            defer { left.formUnion(ids.subtracting([self.holder ?? named])) }
            guard let holder, holder != named else {
                (self.holder, statedAt, waitsSince) = (named, minute, nil)
                return
            }
            // A new id has it at once, a former one by a second answer, ten minutes later.
            guard !left.contains(named) || waitsSince != nil && minute >= statedAt + 10 else {
                waitsSince = waitsSince ?? minute
                return
            }
            left.insert(holder)
            left.remove(named)
            (self.holder, statedAt, waitsSince) = (named, minute, nil)
        }
    }

    @Test("After any answers that show either or both, one id has it, as the rules say", arguments: 1...150)
    func property(_ seed: Int) {
        var random = Seeded(seed: UInt64(seed))
        let known = Bool.random(using: &random)
        var (model, minute, answers) = (Model(), 0, [Evidence]())
        for _ in 0..<Int.random(in: 1...9, using: &random) {
            minute += Int.random(in: 1...12, using: &random)
            let ids: Set<Int> = [[0], [1], [0, 1]].randomElement(using: &random) ?? [0]
            model.hear(ids, minute: minute)
            answers.append(shows(ids, minute: minute, known: known))
            expectOne(answers, known: known, "seed \(seed), minute \(minute)")
            #expect(holders(answers) == model.holder.map { [$0] } ?? [], "seed \(seed), minute \(minute)")
        }
        // The same answers in another order: one id has it, whichever.
        answers.shuffle(using: &random)
        expectOne(answers, known: known, "seed \(seed), shuffled")
    }

    private func expectOne(_ answers: [Evidence], known: Bool, _ place: Comment) {
        let (states, events) = foldWhole(answers)
        let now = states.values.map(\.asOf).max() ?? day(11)
        let active = Self.ids.filter { states[$0]?.timeline.span(at: now)?.state == .active }
        #expect(active.count == 1, place)
        #expect(holders(answers).count == 1, place)
        for id in Self.ids where !active.contains(id) {
            #expect(states[id]?.timeline.span(at: now)?.entitled != true, place)
        }
        let announced = ["started", "renewed", "recovered", "reactivated"]
        let announcements = events.count { event in announced.contains { event.hasSuffix("subscription.\($0)") } }
        // First sight reports the whole history of an id in one event.
        #expect(announcements == (known ? 2 : 1), "\(place): \(events)")
        #expect(foldWhole(answers + answers.suffix(1)).events == events, "\(place): asking again changes nothing")
    }

    @Test("The emptied subscription ends and names its successor; what both show again changes nothing")
    func emptied() throws {
        let first = evidence(11, [bought(11, of: 1)])
        let both = { (asOf: Double) in evidence(asOf, [self.bought(asOf, of: 0), self.bought(asOf, of: 1)]) }
        let (states, events) = foldWhole([first, both(12)])
        #expect(events == ["2000 subscription.started", "2000 subscription.expired"])
        #expect(states["2000"]?.facts.periods.map(\.movedTo) == ["1000"])
        #expect(states["2000"].map { drawing($0.timeline) } == "10 expired/other monthly")
        #expect(states["1000"].map { drawing($0.timeline) } == "10 active monthly | 40 expired/unknown monthly")
        #expect(foldWhole([first, both(12), both(13), both(14)]).events == events)
        // Where it went away, it stays away while the answer shows it where it is.
        let away = [evidence(11, [bought(11, of: 0)]), evidence(12, [bought(12, of: 1)])]
        #expect(holders(away) == [1])
        #expect(holders(away + [both(13), both(14), both(15)]) == [1])
        #expect(holders(away + [13, 14].map { evidence($0, [self.bought($0, of: 0)]) }) == [0])
    }

    @Test("The statuses of an answer, and texts that were signed one after the other, make no second charge")
    func signed() {
        func signed(_ asOf: Double, _ id: Int, _ source: EvidenceSource, milliseconds: Int64) -> TransactionRow {
            bought(asOf, of: id) { ($0.source, $0.asOf) = (source, day(asOf) + Delay(milliseconds: milliseconds)) }
        }
        func answer(_ asOf: Double, _ rows: [TransactionRow]) -> Evidence {
            Evidence(environment: .production, asOf: day(asOf), transactions: rows)
        }
        let first = answer(11, [signed(11, 1, .signedText, milliseconds: 4)])
        for late in [0, 7] as [Int64] {
            let twice = answer(
                12, [signed(12, 0, .signedText, milliseconds: 3), signed(12, 1, .signedText, milliseconds: late)])
            #expect(holders([first, twice]) == [0])
            let statuses = answer(
                12, [signed(12, 0, .signedText, milliseconds: 3), signed(12, 1, .statuses, milliseconds: late)])
            #expect(holders([first, statuses]) == [0])
            #expect(holders([statuses]) == [0])
        }
    }

    @Test("A refund that only the other id still shows takes nothing from who has it")
    func refundedBeside() {
        let refund: (inout TransactionRow) -> Void = { ($0.cancelledAt, $0.cancellationReason) = (day(11.5), "1") }
        let answers = [
            evidence(11, [bought(11, of: 1)]), evidence(12, [bought(12, of: 0), bought(12, of: 1, refund)]),
            evidence(13, [bought(13, of: 0), bought(13, of: 1, refund)]),
        ]
        #expect(holders(answers) == [0])
        #expect(foldWhole(answers).events.count { $0.contains("refund") } == 0)
        let both = [12.0, 13].map { evidence($0, [self.bought($0, of: 0, refund), self.bought($0, of: 1, refund)]) }
        #expect(foldWhole([answers[0]] + both).events.filter { $0.contains("refund") } == ["1000 refund.granted"])
    }
}
