import SeededRandom
import Testing

@testable import Subscriptions

@Suite("A life whose original transaction id changes is told like one whose id stays")
struct MovedLifeTests {
    private static let ids: [OriginalTransactionID] = ["1000", "2000", "3000"]

    /// How the life begins in a drawing, after an older period.
    private static let begins = " | 0 "

    /// What two ways to tell one story must have in common.
    private struct Told: Equatable {
        var timeline: String
        /// The kinds of the events, sorted; without those that a subscription ended because its period moved.
        var kinds: [String]
    }

    /// What stays behind under the first id.
    fileprivate enum Older: CaseIterable {
        case nothing, period, periodAndRenewal
    }

    /// Tells answers under the ids of these places, and checks after each what the customer has.
    private func told(_ answers: [[SubscriptionEvidence]], under places: [Int], besides older: Older) -> [Told] {
        var states: [OriginalTransactionID: SubscriptionState] = [:]
        var kinds: [String] = []
        return zip(answers, places).map { answers, place in
            let id = Self.ids[place]
            let events = foldEach(
                answers.map { $0.whole(under: id).adding(older, under: Self.ids[0]) }, into: &states)
            kinds += events.filter { $0.1.detail["moved_to"] == nil }.map(\.1.kind.rawValue)
            #expect(events.count { $0.1.detail["moved_to"] != nil } <= 1, "the end of what moved is told once")
            // Nothing of a period that moved away is live.
            for (other, state) in states where other != id {
                #expect(
                    state.timeline.spans.allSatisfy { $0.from < day(0) || !$0.entitled }, "\(other) beside \(id)")
            }
            var timeline = states[id].map { drawing($0.timeline) } ?? ""
            if let start = timeline.firstRange(of: Self.begins) { timeline = "0 \(timeline[start.upperBound...])" }
            return Told(timeline: timeline, kinds: kinds.sorted())
        }
    }

    @Test("Access at every time, and the kinds of the events, are those of a life that never moved", arguments: 1...200)
    func property(_ seed: Int) throws {
        var random = Seeded(seed: UInt64(seed))
        var life = Life(Self.ids[0], turns: 5, using: &random)
        while life.isFamily { life = Life(Self.ids[0], turns: 5, using: &random) }
        let isForgetful = Bool.random(using: &random)
        let answers = life.changes.map { day in
            var answer = life.answer(at: day, using: &random, forgetful: isForgetful)
            if answer.renewals.isEmpty { answer.renewals = life.answer(at: day, using: &random).renewals }
            // A device's receipt moves nothing, and a row without a line item has none that could move.
            answer.transactions = life.rows(at: day).map { row in
                var row = row
                (row.asOf, row.ownership) = (answer.asOf, .purchased)
                return row
            }
            return answer
        }
        // The id changes only where the known periods have the dates that they had; one that comes back is told twice.
        let places = answers.indices.dropFirst().filter { answers[$0].keepsDates(of: answers[$0 - 1]) }
        let changes = Set(places.shuffled(using: &random).prefix(Int.random(in: 1...2, using: &random)))
        var (place, known) = (0, 0)
        let under = answers.indices.map { index in
            if place == 0 { known = answers[max(index, 1) - 1].transactions.count }
            guard changes.contains(index) else { return place }
            // It comes back as a whole: a period that was never there would be there at once.
            let mayReturn = answers[index].transactions.count == known
            place = place == 0 ? 1 : mayReturn && Bool.random(using: &random) ? 0 : 2
            return place
        }
        let twice = answers.indices.map { index in
            changes.contains(index) && under[index] == 0
                ? [answers[index], answers[index].again(in: .minutes(11))] : [answers[index]]
        }
        let older = Older.allCases[seed % 3]
        let stayed = told(twice, under: answers.map { _ in 0 }, besides: older)
        let moved = told(twice, under: under, besides: older)
        for index in answers.indices where moved[index] != stayed[index] {
            let story = "seed \(seed), answer \(index) of \(under), besides \(older)"
            #expect(moved[index].timeline == stayed[index].timeline, "\(story)")
            #expect(moved[index].kinds == stayed[index].kinds, "\(story)")
            break
        }
    }
}

extension Evidence {
    /// The same with what stays behind under the first id.
    fileprivate func adding(_ older: MovedLifeTests.Older, under id: OriginalTransactionID) -> Evidence {
        guard older != .nothing else { return self }
        var evidence = self
        var period = row("older", -100, -70, of: id)
        (period.asOf, period.ownership) = (asOf, .purchased)
        evidence.transactions.append(period)
        if older == .periodAndRenewal, !evidence.renewals.contains(where: { $0.originalTransactionID == id }) {
            evidence.renewals.append(
                RenewalRow(
                    path: "pending_renewal_info[1]", asOf: asOf, originalTransactionID: id,
                    renewal: renewal(false, intent: "1", retry: false)))
        }
        return evidence
    }
}

extension SubscriptionEvidence {
    /// The same as a whole answer, under an id whose transactions have other ids.
    fileprivate func whole(under id: OriginalTransactionID) -> Evidence {
        var evidence = Evidence(environment: .production, asOf: asOf, transactions: transactions, renewals: renewals)
        for index in evidence.transactions.indices {
            evidence.transactions[index].originalTransactionID = id
            evidence.transactions[index].transactionID = TransactionID("\(id) \(transactions[index].transactionID)")
        }
        for index in evidence.renewals.indices { evidence.renewals[index].originalTransactionID = id }
        return evidence
    }

    /// The same answer, given later.
    fileprivate func again(in delay: Delay) -> SubscriptionEvidence {
        var later = self
        later.asOf = asOf + delay
        for index in later.transactions.indices { later.transactions[index].asOf = later.asOf }
        for index in later.renewals.indices { later.renewals[index].asOf = later.asOf }
        return later
    }

    /// Returns whether the periods of another answer have the same dates here.
    fileprivate func keepsDates(of other: SubscriptionEvidence) -> Bool {
        other.transactions.allSatisfy { row in transactions.contains { $0.isSamePeriod(as: row) } }
    }
}
