import SeededRandom
import Subscriptions
import Testing

@Suite("Facts are merged") struct MergeTests {
    @Test("Merging is commutative, associative and idempotent")
    func mergingIsCommutativeAssociativeAndIdempotent() {
        var random = Seeded(seed: 7)
        for _ in 0..<400 {
            let answers = RandomLife.answers(using: &random).map { SubscriptionFacts($0) }
            guard let a = answers.first, let c = answers.last else { continue }
            let b = answers[answers.count / 2]
            #expect(a.merging(a) == a, "\(random)")
            #expect(a.merging(c) == c.merging(a), "\(random)")
            #expect(a.merging(b).merging(c) == a.merging(b.merging(c)), "\(random)")
        }
    }

    @Test("Answers in any order give the same facts and timeline, but for what is taken back and waits")
    func answersInAnyOrderGiveTheSameFactsAndTimeline() {
        var random = Seeded(seed: 8)
        var waiting = 0
        for _ in 0..<300 {
            let answers = RandomLife.answers(using: &random)
            let inOrder = settle(answers).state
            let shuffled = settle(answers.shuffled(using: &random)).state
            guard inOrder?.retractions == [], shuffled?.retractions == [] else {
                waiting += 1
                continue
            }
            #expect(inOrder?.facts == shuffled?.facts, "\(random)")
            #expect(inOrder?.timeline == shuffled?.timeline, "\(random)")
        }
        #expect((1...60).contains(waiting), "\(waiting) of 300")
    }

    @Test("The newest speaker wins, and silence takes nothing")
    func newestSpeakerWinsAndSilenceTakesNothing() {
        let device = row("1", 0, 30, asOf: 5, source: .deviceReceipt)
        var server = row("1", 0, 30, cancelled: 3)
        server.appAccountToken = "token"
        let facts = SubscriptionFacts(answer(4, [server])).adding(answer(6, [device]))
        #expect(facts.periods.count == 1)
        #expect(facts.periods.first?.cancelledAt == day(3), "a device's snapshot does not reverse a refund")
        #expect(facts.appAccountToken == "token")
        let reversed = facts.adding(answer(7, [row("1", 0, 30)]))
        #expect(reversed.periods.first?.cancelledAt == nil, "a newer row of the server does")
        #expect(reversed.appAccountToken == "token")
        #expect(reversed.adding(answer(4, [server])).periods.first?.cancelledAt == nil)
        #expect(reversed.adding(answer(8, [row("2", 30, 60)])).periods.count == 2, "absence is no evidence")
    }

    @Test("Ties are broken by content")
    func tiesAreBrokenByContent() {
        let (early, late) = (Fact(day(1), asOf: day(9), path: "a"), Fact(day(2), asOf: day(9), path: "a"))
        #expect(early.merging(late) == late && late.merging(early) == late)
        let kept = Fact(Revocation(), asOf: day(9), path: "b")
        let taken = Fact(Revocation(cancelledAt: day(3)), asOf: day(9), path: "a")
        #expect(kept.merging(taken) == taken && taken.merging(kept) == taken)
        let reasons = [nil, "", "0", "1"].map { Revocation(cancelledAt: day(3), reason: $0) }
        for left in reasons {
            for right in reasons where left != right { #expect(left.yields(to: right) != right.yields(to: left)) }
        }
    }

    @Test("The same period is found by its identifiers")
    func samePeriodIsFoundByItsIdentifiers() {
        let table: [(String, [TransactionRow], Int)] = [
            ("restored under another delivery", [row("1", 0, 30), row("1", 0, 30, transaction: "x")], 1),
            ("two line items of one instant", [row("1", 0, 30), row("2", 0, 30, transaction: "t1")], 2),
            ("no line item, known delivery", [row("1", 0, 30), row("1", 0.00001, 30, numbered: false)], 1),
            ("no line item, same start", [row("1", 0, 30), row("9", 0, 30, numbered: false)], 1),
            ("no line item, other product", [row("1", 0, 30), row("9", 0, 30, product: "x", numbered: false)], 2),
            ("no line items at all", [row("1", 0, 30, numbered: false), row("9", 0, 30, numbered: false)], 1),
            ("a gap apart", [row("1", 0, 30, numbered: false), row("2", 30, 60, numbered: false)], 2),
        ]
        for (name, rows, count) in table {
            #expect(SubscriptionFacts(answer(1, rows)).periods.count == count, "\(name)")
            let oneByOne = rows.reversed().map { SubscriptionFacts(answer(1, [$0])) }
            #expect(oneByOne.dropFirst().reduce(oneByOne[0]) { $0.merging($1) }.periods.count == count, "\(name)")
        }
    }
}

@Suite("Facts are recorded") struct RecordTests {
    /// Facts as the ledger would give them back, every period stored under a key.
    private func stored(_ facts: SubscriptionFacts) -> SubscriptionFacts {
        var records = facts.records
        for index in records.indices { records[index].id = Int64(index + 1) }
        return SubscriptionFacts(
            originalTransactionID: facts.originalTransactionID, asOf: facts.asOf, records: records,
            renewal: facts.renewal)
    }

    @Test("Records give back the facts")
    func recordsGiveBackTheFacts() {
        var random = Seeded(seed: 9)
        for _ in 0..<300 {
            let facts = RandomLife.facts(using: &random)
            #expect(stored(facts) == facts, "\(random)")
            #expect(
                stored(facts).recordsToWrite(since: stored(facts), policy: .standard(for: .production)).isEmpty,
                "\(random)")
            #expect(
                facts.recordsToWrite(since: nil, policy: .standard(for: .production)).count == facts.periods.count,
                "\(random)")
        }
    }

    @Test("Reconfirmation writes no period")
    func reconfirmationWritesNoPeriod() {
        let first = [row("1", 0, 30), row("2", 30, 60)]
        let known = stored(SubscriptionFacts(answer(40, first, renewal())))
        let again = known.adding(answer(41, first.reversed(), renewal()))
        #expect(again.asOf == day(41))
        #expect(again.records.allSatisfy { $0.asOf == nil && $0.ending?.asOf == nil })
        #expect(again.recordsToWrite(since: known, policy: .standard(for: .production)).isEmpty)
    }

    @Test("Only what is new or differs is written")
    func onlyWhatIsNewOrDiffersIsWritten() {
        let known = stored(SubscriptionFacts(answer(40, [row("1", 0, 30), row("2", 30, 60)], renewal())))
        let renewed = known.adding(answer(61, [row("1", 0, 30), row("2", 30, 60), row("3", 60, 90)], renewal()))
        #expect(
            renewed.recordsToWrite(since: known, policy: .standard(for: .production)).map(\.id) == [2, nil],
            "the old head's ending gets its own clock")
        let silent = known.adding(answer(41, [row("2", 30, 60)], renewal()))
        #expect(
            silent.recordsToWrite(since: known, policy: .standard(for: .production)).map(\.id) == [1],
            "its clock is no longer the subscription's")
    }

    @Test("Periods that turn out to be one are joined")
    func periodsThatTurnOutToBeOneAreJoined() {
        let apart = [row("1", 0, 30, numbered: false), row("2", 1, 30, numbered: false)]
        let known = stored(SubscriptionFacts(answer(5, apart)))
        let joined = known.adding(answer(6, [row("3", 0, 30, transaction: "t2", numbered: false)]))
        #expect(joined.periods.map(\.id) == [1])
        #expect(joined.periodIDsToDelete(since: known) == [2])
    }
}
