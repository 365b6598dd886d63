import SeededRandom
import Subscriptions
import Testing

/// Every change from one state to another, with kinds of events: at least one of them reports it. No kind means a silent
/// change.
/// docs/lifecycle.md shows the same table.
private let pairs: [State: [State: Set<EventKind>]] = [
    .active: [
        .gracePeriod: [.billingGraceEntered], .billingRetry: [.billingRetryEntered], .awaitingRenewal: [],
        .expired: ended, .revoked: takenBack,
    ],
    .gracePeriod: [
        .active: paid, .billingRetry: [.billingGraceExpired], .awaitingRenewal: [], .expired: [.billingGraceExpired],
        .revoked: takenBack,
    ],
    .billingRetry: [
        .active: paid, .gracePeriod: [.billingGraceEntered], .awaitingRenewal: [], .expired: ended,
        .revoked: takenBack,
    ],
    .awaitingRenewal: [
        .active: paid, .gracePeriod: [.billingGraceEntered], .billingRetry: [.billingRetryEntered], .expired: ended,
        .revoked: takenBack,
    ],
    .expired: [
        .active: paid, .gracePeriod: [.billingGraceEntered], .billingRetry: [.billingRetryEntered],
        .awaitingRenewal: [], .revoked: takenBack,
    ],
    .revoked: [
        .active: paid.union([.refundReversed]), .gracePeriod: [.billingGraceEntered],
        .billingRetry: [.billingRetryEntered], .awaitingRenewal: [], .expired: ended,
    ],
]

private let ended: Set<EventKind> = [.subscriptionExpired, .trialExpired]
private let takenBack: Set<EventKind> = [.refundGranted, .familyRevoked]
private let paid: Set<EventKind> = [
    .trialConverted, .subscriptionRenewed, .subscriptionRecovered, .subscriptionReactivated, .productChanged,
    .subscriptionExtended, .refundReversed,
]

/// Changes that chance hardly ever makes.
private let rareStories: [[SubscriptionEvidence]] = {
    let month = row("1", 0, 30)
    let retry = renewal(intent: "2", retry: true)
    let grace = renewal(intent: "2", retry: true, grace: 36)
    let shortGrace = renewal(intent: "2", retry: true, grace: 30.015)
    return [
        [answer(30.01, [month], retry), answer(30.02, [month], renewal(retry: false))],
        [answer(30.01, [month], shortGrace), answer(30.02, [month], renewal(retry: false))],
        [answer(31, [month], renewal()), answer(32, [month], retry)],
        [answer(31, [month], renewal()), answer(32, [month], grace)],
        // What is taken back counts on the second answer.
        [
            answer(10, [row("1", 0, 30, cancelled: 9)], renewal()),
            answer(32, [month], renewal(false, intent: "1", retry: false)),
            answer(32.1, [month], renewal(false, intent: "1", retry: false)),
        ],
        [
            answer(10, [row("1", 0, 30, cancelled: 9)], renewal()), answer(32, [month], retry),
            answer(32.1, [month], retry),
        ],
        [
            answer(10, [row("1", 0, 30, cancelled: 9)], renewal()), answer(32, [month], grace),
            answer(32.1, [month], grace),
        ],
        [answer(31, [month], renewal()), answer(31.01, [row("1", 0, 31)], renewal())],
        [
            answer(10, [row("1", 0, 30, cancelled: 9)], renewal()), answer(30.01, [month], renewal()),
            answer(30.02, [month], renewal()),
        ],
        [answer(30.01, [month], renewal()), answer(30.02, [row("1", 0, 30, cancelled: 30.015)], renewal())],
    ]
}()

@Suite("Every change of state has its event") struct StatePairTests {
    /// The states before and after one more answer, each as of the newest answer then.
    private func change(
        _ state: SubscriptionState?, _ slice: SubscriptionEvidence, _ policy: Policy
    ) -> (state: SubscriptionState, from: State?, to: State?, kinds: Set<EventKind>) {
        let result = reconcile(state, with: slice, policy: policy)
        let from = state.flatMap { $0.timeline.span(at: $0.asOf)?.state }
        let to = result.state.timeline.span(at: result.state.asOf)?.state
        return (result.state, from, to, Set(result.events.map(\.kind)))
    }

    @Test("Every change of state has an event or is listed as silent")
    func everyChangeOfStateIsToldOrListedAsSilent() {
        var reached: [State: Set<State>] = [:]
        func follow(_ answers: [SubscriptionEvidence], _ policy: Policy, _ random: Seeded) {
            var state: SubscriptionState?
            var reported: Set<EventKind> = []
            for answer in answers {
                let (step, periods) = (change(state, answer, policy), state?.periods)
                state = step.state
                // A next period may be refunded before it begins: that is an event at once, or known from the first.
                reported.formUnion(step.kinds.intersection(takenBack))
                if periods == nil, answer.transactions.contains(where: { $0.cancelledAt != nil }) {
                    reported.formUnion(takenBack)
                }
                // What appeared and is over again has changed the state more than once.
                guard let from = step.from, let to = step.to, from != to, to == .active || step.state.periods == periods
                else { continue }
                // So has grace that came and went between two answers.
                let cameAndWent: Set<EventKind> = [.billingGraceEntered, .billingGraceExpired]
                if from != .gracePeriod, step.kinds.isSuperset(of: cameAndWent) { continue }
                reached[from, default: []].insert(to)
                guard let kinds = pairs[from]?[to] else {
                    Issue.record("\(from) to \(to) is not listed, \(random)")
                    continue
                }
                let heard = to == .revoked ? reported : step.kinds
                #expect(kinds.isEmpty || !kinds.isDisjoint(with: heard), "\(from) to \(to), \(random)")
            }
        }
        lives(400, seed: 21) { life, random in
            let late = life.changes.map { $0 + Double.random(in: 0...0.2, using: &random) }
            follow((life.changes + late).sorted().map { life.answer(at: $0, using: &random) }, standardPolicy, random)
        }
        for offset in 0..<1200 {
            var random = Seeded(seed: 22_000_000 + UInt64(offset))
            follow(RandomLife.answers(using: &random), standardPolicy, random)
        }
        for answers in rareStories { follow(answers, standardPolicy, Seeded(seed: 0)) }
        let listed = pairs.mapValues { Set($0.keys) }
        for (from, targets) in listed {
            let missing = targets.subtracting(reached[from] ?? [])
            #expect(missing.isEmpty, "nothing reaches \(missing) from \(from), which proves nothing")
        }
    }
}
