import SeededRandom
import Subscriptions
import Testing

/// Runs a law over seeded lives; the generator's description is the seed to print.
func lives(_ count: Int, seed: UInt64, _ body: (Life, inout Seeded) -> Void) {
    for offset in 0..<UInt64(count) {
        var random = Seeded(seed: seed &* 1_000_000 &+ offset)
        let life = Life(turns: Int.random(in: 1...7, using: &random), using: &random)
        body(life, &random)
    }
}

extension Life {
    /// Answers on some days of this life, oldest first; now and then two of one instant.
    func answers(upTo count: Int, using random: inout Seeded) -> [SubscriptionEvidence] {
        let last = changes.last ?? 0
        var days = (0..<Int.random(in: 2...count, using: &random)).map { _ in
            Bool.random(using: &random)
                ? changes.randomElement(using: &random) ?? 0 : Double.random(in: 0...last + 20, using: &random)
        }
        if let again = days.randomElement(using: &random), Bool.random(using: &random) { days.append(again) }
        return days.sorted().map { answer(at: $0, using: &random) }
    }
}

extension SubscriptionEvidence {
    /// The same answer, given again later.
    func again(after delay: Delay) -> SubscriptionEvidence {
        var later = self
        later.asOf = asOf + delay
        for index in transactions.indices where transactions[index].source == .latestReceiptInfo {
            later.transactions[index].asOf = asOf + delay
        }
        for index in renewals.indices { later.renewals[index].asOf = asOf + delay }
        return later
    }
}

/// Settles an answer, and the same one ten minutes later if it takes something back.
private func settled(_ answer: SubscriptionEvidence, into state: SubscriptionState?, policy: Policy)
    -> SubscriptionState
{
    let once = reconcile(state, with: answer, policy: policy).state
    return once.retractions.isEmpty
        ? once : reconcile(once, with: answer.again(after: .minutes(10)), policy: policy).state
}

@Suite("Laws hold for every history of facts") struct LawTests {
    @Test("Access is what the history says at every instant")
    func accessIsWhatTheHistorySaysAtEveryInstant() {
        lives(700, seed: 1) { life, random in
            var state: SubscriptionState?
            for (change, next) in zip(life.changes, life.changes.dropFirst()) {
                state = settled(life.answer(at: change, using: &random), into: state, policy: strictPolicy)
                for probe in [change, (change + next) / 2, next - 0.0001] where probe < next {
                    guard let truth = life.truth(at: probe) else { continue }
                    let span = state?.timeline.span(at: day(probe))
                    #expect(span.map(words) == truth.words, "day \(probe), \(random)")
                    #expect(span?.entitled == truth.entitled, "day \(probe), \(random)")
                }
            }
        }
    }

    @Test("The past goes on saying who had access")
    func thePastGoesOnSayingWhoHadAccess() {
        lives(500, seed: 14) { life, random in
            var state: SubscriptionState?
            for change in life.changes {
                state = settled(life.answer(at: change, using: &random), into: state, policy: strictPolicy)
            }
            guard let timeline = state?.timeline else { return }
            for (change, next) in zip(life.changes, life.changes.dropFirst()) {
                let probe = (change + next) / 2
                // A refund that was reversed since never was one.
                guard let truth = life.truth(at: probe), !truth.words.hasPrefix("revoked") else { continue }
                #expect(timeline.span(at: day(probe))?.entitled == truth.entitled, "day \(probe), \(random)")
            }
        }
    }

    @Test("Answers that leave out what was said before change neither what is true nor what was")
    func whatIsNotSaidIsUnsaid() {
        lives(700, seed: 15) { life, random in
            var state: SubscriptionState?
            for (change, next) in zip(life.changes, life.changes.dropFirst()) {
                let said = life.answer(at: change, using: &random, forgetful: true)
                state = settled(said, into: state, policy: strictPolicy)
                guard let truth = life.truth(at: change) else { continue }
                let span = state?.timeline.span(at: day(change))
                #expect(span.map(words) == truth.words, "day \(change), \(random)")
                #expect(state?.timeline.span(at: day(next - 0.0001))?.entitled == truth.entitled, "\(random)")
            }
            for (change, next) in zip(life.changes, life.changes.dropFirst()) {
                let probe = (change + next) / 2
                // A refund that was reversed since never was one.
                guard let truth = life.truth(at: probe), !truth.words.hasPrefix("revoked") else { continue }
                #expect(
                    state?.timeline.span(at: day(probe))?.entitled == truth.entitled, "day \(probe), \(random)")
            }
        }
    }

    @Test("An answer means the same whatever was known before, but for a withdrawal that waits and a grace")
    func knownBefore() {
        var excused = 0
        for offset in 0..<3_000 as Range<UInt64> {
            var random = Seeded(seed: 16_000_000 + offset)
            let (older, newest) = RandomLife.answersAndNewest(using: &random)
            var answers = older
            answers.insert(newest, at: Int.random(in: 0...older.count, using: &random))
            guard let state = settle(answers).state, state.retractions.isEmpty else {
                excused += 1
                continue
            }
            let alone = SubscriptionFacts(newest)
            let graces = older.flatMap(\.renewals).compactMap(\.renewal.graceExpiresAt)
            for days in [0, 1, 3, 20, 70, 400] as [Int64] {
                let probe = newest.asOf + .days(days)
                let found = verdict(of: state.facts, at: probe, policy: standardPolicy)
                let said = verdict(of: alone, at: probe, policy: standardPolicy)
                let isGranted = older.flatMap(\.renewals).contains { $0.renewal.isInGraceByStatus == true }
                if found.state == .gracePeriod, said.state != .gracePeriod,
                    isGranted || graces.contains(where: { $0 > probe })
                {
                    excused += 1
                    continue
                }
                // Where the newest answer says grace without a date, a date that was ahead then ends it.
                if said.state == .gracePeriod,
                    newest.renewals.contains(where: { $0.renewal.isInGraceByStatus == true }),
                    graces.contains(where: { $0 > newest.asOf })
                {
                    excused += 1
                    continue
                }
                #expect(found.state == said.state && found.reason == said.reason, "after \(days) days, \(random)")
                #expect(found.entitled == said.entitled, "after \(days) days, \(random)")
            }
        }
        #expect((1...900).contains(excused), "\(excused) excuses of 18,000")
    }

    @Test("The same evidence twice changes nothing")
    func theSameEvidenceTwiceChangesNothing() {
        lives(500, seed: 2) { life, random in
            var state: SubscriptionState?
            for answer in life.answers(upTo: 6, using: &random).shuffled(using: &random) {
                let once = reconcile(state, with: answer, policy: standardPolicy)
                let again = reconcile(once.state, with: answer, policy: standardPolicy)
                #expect(again.events.isEmpty && !again.changed && again.state == once.state, "\(random)")
                state = once.state
            }
        }
    }

    @Test("Any order of the same observations ends in the same facts")
    func anyOrderOfTheSameObservationsEndsInTheSameFacts() {
        lives(500, seed: 3) { life, random in
            let answers = life.answers(upTo: 6, using: &random)
            // What is taken back waits for a second answer.
            let again = [Delay.minutes(10), .minutes(20)].compactMap { answers.last?.again(after: $0) }
            let inOrder = settle(answers + again).state
            let shuffled = settle(answers.shuffled(using: &random) + again).state
            #expect(inOrder?.facts == shuffled?.facts, "\(random)")
            #expect(inOrder?.timeline == shuffled?.timeline, "\(random)")
        }
    }

    @Test("Older evidence never replaces a newer fact")
    func olderEvidenceNeverReplacesANewerFact() {
        lives(500, seed: 4) { life, random in
            let answers = life.answers(upTo: 6, using: &random)
            guard let newest = answers.last else { return }
            let alone = SubscriptionFacts(newest)
            let after = settle([newest] + answers.dropLast().shuffled(using: &random)).state?.facts
            #expect(after?.renewal == alone.renewal, "\(random)")
            for period in alone.periods where period.asOf == newest.asOf {
                let same = after?.periods.first {
                    $0.purchasedAt == period.purchasedAt && $0.productID == period.productID
                }
                #expect(same?.terms.value == period.terms.value, "\(random)")
                #expect(same?.revocation.value == period.revocation.value, "\(random)")
                if let said = period.details.isTrial {
                    #expect(same?.details.isTrial?.value == said.value, "\(random)")
                }
            }
        }
    }

    @Test("Only its reversal beats a revocation")
    func onlyItsReversalBeatsARevocation() {
        lives(700, seed: 5) { life, random in
            guard let refund = life.truths.first(where: { $0.words.hasPrefix("revoked") })?.from else { return }
            var state = settle([life.answer(at: refund, using: &random)], policy: strictPolicy).state
            let known = life.changes.filter { $0 < refund }.shuffled(using: &random)
            let later = refund + 0.001
            let snapshot = life.rows(at: refund).map { row in
                var row = row
                row.source = .deviceReceipt
                (row.asOf, row.cancelledAt, row.isUpgraded) = (day(later), nil, false)
                return row
            }
            for slice in known.map({ life.answer(at: $0, using: &random) }) + [answer(later, snapshot)] {
                state = reconcile(state, with: slice, policy: strictPolicy).state
                #expect(state?.timeline.span(at: day(later))?.state == .revoked, "\(random)")
            }
            let reversed = life.rows(at: refund).map { row in
                var row = row
                row.cancelledAt = row.isUpgraded ? row.cancelledAt : nil
                return row
            }
            let after = settled(answer(later + 0.001, reversed), into: state, policy: strictPolicy)
            #expect(after.timeline.span(at: day(later + 0.001))?.state != .revoked, "\(random)")
        }
    }

    @Test("Subscriptions of one receipt stay apart")
    func subscriptionsOfOneReceiptStayApart() {
        for offset in 0..<150 {
            var random = Seeded(seed: 6_000_000 + UInt64(offset))
            let ids: [OriginalTransactionID] = ["1000", "2000", "3000"]
            let parts = ids.map { Life($0, using: &random).answer(at: 90, using: &random) }
            var rows = parts.flatMap(\.transactions).shuffled(using: &random)
            for index in rows.indices where rows[index].groupID != nil {
                rows[index].groupID = SubscriptionGroupID("group \(rows[index].originalTransactionID)")
            }
            let evidence = Evidence(
                environment: .production, asOf: day(90), transactions: rows, renewals: parts.flatMap(\.renewals))
            #expect(evidence.subscriptions == ids, "\(random)")
            #expect(evidence.purchases.isEmpty, "\(random)")
            for part in parts {
                let slice = evidence.slice(of: part.originalTransactionID)
                let (apart, alone) = (SubscriptionFacts(slice), SubscriptionFacts(part))
                #expect(
                    Timeline(of: apart, policy: strictPolicy) == Timeline(of: alone, policy: strictPolicy), "\(random)")
                #expect(apart.renewal == alone.renewal, "\(random)")
            }
        }
    }

    private func words(_ span: Span) -> String {
        span.state.rawValue + (span.reason.map { "/\($0.rawValue)" } ?? "") + " \(span.productID)"
    }
}
