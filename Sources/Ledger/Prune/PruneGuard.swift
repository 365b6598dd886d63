import Subscriptions

/// The contents of a receipt from all its answers, which must be the same without some of them.
struct PruneGuard {
    private let replay: Replay
    private let subscriptions: [(target: Replay.Target, policy: Policy, state: SubscriptionState?)]
    private let purchases: [(target: Replay.PurchaseTarget, policy: Policy, state: PurchaseState?)]

    /// Returns nil when a subscription belongs to an unknown app.
    init?(of things: ReplayTargets, _ replay: Replay, run: PruneRun) {
        var subscriptions: [(target: Replay.Target, policy: Policy, state: SubscriptionState?)] = []
        for target in things.allSubscriptions {
            guard let app = run.apps[target.key.appID] else { return nil }
            let policy = app.policy(for: target.key.environment)
            subscriptions.append((target, policy, replay.state(of: target, policy: policy)))
        }
        self.replay = replay
        self.subscriptions = subscriptions
        var purchases: [(target: Replay.PurchaseTarget, policy: Policy, state: PurchaseState?)] = []
        for target in things.allPurchases {
            guard let app = run.apps[target.key.appID] else { return nil }
            let policy = app.policy(for: target.key.environment)
            purchases.append((target, policy, replay.state(of: target.key, policy: policy)))
        }
        self.purchases = purchases
    }

    /// Returns the answers that must stay because no other answer reports one of their facts at its clock.
    /// The last answer about the end of a period is such a case. This saves trying each of them.
    func needed(besides dropped: Set<Int64>) -> Set<Int64> {
        let subscribed = subscriptions.map { ($0.state?.facts.clocks ?? [], replay.speakers(of: $0.target.key)) }
        let bought = purchases.map { ($0.state?.facts.clocks ?? [], replay.speakers(of: $0.target.key)) }
        return (subscribed + bought).reduce(into: []) { needed, thing in
            for clock in thing.0 {
                let speakers = thing.1[clock, default: []].subtracting(dropped)
                if speakers.count == 1 { needed.formUnion(speakers) }
            }
        }
    }

    /// Whether the facts are the same to the last clock, so that later answers give the same result too.
    func isSame(without dropped: Set<Int64>) -> Bool {
        let subscriptionsAgree = subscriptions.allSatisfy { whole in
            let rest = replay.state(of: whole.target, policy: whole.policy, without: dropped)
            return whole.state.map(KnownFacts.init) == rest.map(KnownFacts.init)
        }
        return subscriptionsAgree
            && purchases.allSatisfy { whole in
                let rest = replay.state(of: whole.target.key, policy: whole.policy, without: dropped)
                return whole.state?.facts.withoutPaths == rest?.facts.withoutPaths
                    && whole.state?.refundRetractedAt == rest?.refundRetractedAt
            }
    }
}

/// Everything known about a subscription with its clocks, but without the answer it came from: of equal answers any one
/// will do.
private struct KnownFacts: Equatable {
    let asOf: Instant
    let periods: [PeriodRecord]
    let renewal: Renewal?
    let renewalAsOf: Instant?
    let retractions: [Retraction]

    init(_ state: SubscriptionState) {
        asOf = state.asOf
        periods = state.facts.records.map(\.withoutPaths)
        renewal = state.facts.renewal?.value
        renewalAsOf = state.facts.renewal?.asOf
        retractions = state.retractions
    }
}

extension PurchaseFacts {
    /// The same with every path emptied, because rows change places in every answer.
    var withoutPaths: PurchaseFacts {
        var copy = self
        copy.terms.origin.path = ""
        copy.revocation.origin.path = ""
        copy.ownership?.origin.path = ""
        copy.appAccountToken?.origin.path = ""
        copy.price?.origin.path = ""
        copy.revocationPercentage?.origin.path = ""
        return copy
    }
}
