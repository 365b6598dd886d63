import Subscriptions
import Testing

@Suite("Laws hold for the events of every history") struct EventLawTests {
    private static let beginnings: Set<EventKind> = [
        .subscriptionStarted, .trialStarted, .trialConverted, .subscriptionRenewed, .subscriptionRecovered,
        .subscriptionReactivated, .productChanged,
    ]

    private func beginnings(_ events: [Event]) -> String {
        events.map(\.kind).filter { Self.beginnings.contains($0) }.map(\.rawValue).joined(separator: " ")
    }

    @Test("Every period is reported once as what it is")
    func everyPeriodIsToldOnceAsWhatItIs() {
        lives(700, seed: 11) { life, random in
            let answers = life.changes.map { life.answer(at: $0, using: &random) }
            let reported = settle(answers, policy: strictPolicy).events.flatMap { $0 }
            #expect(beginnings(reported) == life.reported.map(\.kinds).joined(separator: " "), "\(random)")
        }
    }

    @Test("First sight is one event whatever the past holds")
    func firstSightIsOneEventWhateverThePastHolds() {
        lives(400, seed: 12) { life, random in
            let last = life.changes.last ?? 0
            let answer = life.answer(at: Double.random(in: 0...last + 100, using: &random), using: &random)
            let (state, events) = settle([answer], policy: strictPolicy)
            #expect(events.flatMap { $0 }.count == 1, "\(random)")
            let event = events.first?.first
            #expect(event?.kind.rawValue == life.reported.first?.kinds, "\(random)")
            #expect(event?.occurredAt == state?.startedAt, "\(random)")
            let isOver = state?.timeline.span(at: answer.asOf)?.entitled == false
            let isPast = (state?.periods ?? 0) > 1 || isOver
            #expect(event?.detail["backfill"] == (isPast ? .flag(true) : nil), "\(random)")
            #expect(event?.detail["periods"] == (isPast ? .integer(Int64(state?.periods ?? 0)) : nil), "\(random)")
        }
    }

    @Test("After silence every period is reported once by the rule of gaps")
    func afterSilenceEveryPeriodIsToldOnceByTheRuleOfGaps() {
        lives(700, seed: 13) { life, random in
            let last = life.changes.last ?? 0
            let seen = Double.random(in: 0...last, using: &random)
            let answers = [seen, last].map { life.answer(at: $0, using: &random) }
            let (_, events) = settle(answers, policy: strictPolicy)
            #expect(beginnings(events[1]) == life.expectedBeginnings(from: seen, to: last), "day \(seen), \(random)")
        }
    }

    @Test("No event is from the future, and none is repeated")
    func nothingIsToldFromTheFutureAndNothingTwice() {
        lives(500, seed: 14) { life, random in
            var state: SubscriptionState?
            var seen: Set<Event> = []
            for answer in life.changes.map({ life.answer(at: $0, using: &random) }) {
                let result = reconcile(state, with: answer, policy: strictPolicy)
                for event in result.events {
                    #expect(event.occurredAt <= result.state.asOf, "\(random)")
                    #expect(seen.insert(event).inserted, "\(event.kind) twice, \(random)")
                }
                #expect(result.state.version == (state?.version ?? 0) + (result.changed ? 1 : 0), "\(random)")
                state = result.state
            }
        }
    }
}

extension Life {
    /// INTERFACES' rule of gaps, restated: the events of periods that appeared between two answers.
    fileprivate func expectedBeginnings(from seen: Double, to last: Double) -> String {
        let known = rows(at: seen).count
        let rows = rows(at: last)
        let failing = truth(at: seen).map { $0.words.hasPrefix("grace") || $0.words.hasPrefix("billing") } ?? false
        var found: [(start: Instant, kinds: String)] = []
        for index in known..<max(known, rows.count) {
            let row = rows[index]
            guard !row.gaveWay, let previous = rows[..<index].lastIndex(where: { !$0.gaveWay }) else {
                found.append((row.purchasedAt, "subscription.renewed"))
                continue
            }
            if reported[index].kinds == "product.changed" {
                found.append((row.purchasedAt, "product.changed"))
                continue
            }
            let before = rows[previous]
            let end = before.expiresAt ?? before.purchasedAt
            let isChange = before.productID != row.productID
            let wasOff = renewal(at: seen)?.willRenew == false
            let gap = row.purchasedAt - (row.purchasedAt >= end ? end : before.cancelledAt ?? end)
            let kind =
                gap > (wasOff ? .hours(1) : .days(65))
                ? "subscription.reactivated"
                : before.isTrial == true && !isFamily && row.isTrial != true
                    ? "trial.converted"
                    : gap > .hours(1) || failing && previous < known
                        ? "subscription.recovered" : "subscription.renewed"
            found.append((row.purchasedAt, (isChange ? "product.changed " : "") + kind))
        }
        return found.sorted { $0.start < $1.start }.map(\.kinds).joined(separator: " ")
    }
}

extension TransactionRow {
    /// Charged ahead of time and replaced before it began.
    fileprivate var gaveWay: Bool { isUpgraded && cancelledAt.map { $0 < purchasedAt } ?? false }
}
