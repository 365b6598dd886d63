import AppStore
import Subscriptions

/// The meaning of one answer of verifyReceipt at an instant, with the reasons: no database, no network.
package struct Explanation: Sendable {
    /// One subscription of the answer.
    struct ExplainedSubscription: Sendable {
        let state: SubscriptionState
        let groupID: SubscriptionGroupID?
        let verdict: Verdict
    }

    /// An event between the stored answer and this one.
    struct ExplainedEvent: Sendable {
        let id: OriginalTransactionID
        let event: Event
    }

    let finding: Finding
    let status: Int?
    let environment: StoreEnvironment?
    let bundleID: BundleID?
    let at: Instant
    let subscriptions: [ExplainedSubscription]
    let purchases: [PurchaseState]
    /// Paths of rows that were skipped because they cannot be read.
    let unreadableRows: [String]
    /// Nil when there was no earlier answer to compare with.
    let events: [ExplainedEvent]?

    /// Explains a response body.
    ///
    /// - Parameters:
    ///   - body: Apple's answer; unreadable data is explained as indeterminate.
    ///   - bundleID: The app asked about; nil accepts every app.
    ///   - at: The instant to explain for; the answer's `request_date_ms` where nil, else `now`.
    ///   - previous: An earlier answer to treat as the stored one.
    ///   - now: The current time.
    package init(body: [UInt8], bundleID: BundleID?, at: Instant?, previous: [UInt8]?, now: Instant) {
        let answer = AppStoreAnswer(body: body, from: .production)
        let clock = at ?? now
        finding = Finding(in: answer, for: bundleID, clock: clock)
        status = answer.response?.status
        environment = StoreEnvironment(named: answer.response?.environment)
        self.bundleID = answer.response?.bundleID.map { BundleID($0) }
        unreadableRows = answer.response?.unreadableRows ?? []
        let earlier = previous.map {
            Finding(in: AppStoreAnswer(body: $0, from: .production), for: bundleID, clock: clock)
        }
        guard case .verified(let evidence) = finding else {
            self.at = at ?? answer.response?.requestedAt.map(Instant.init(milliseconds:)) ?? now
            (subscriptions, purchases) = ([], [])
            events = previous == nil ? nil : []
            return
        }
        let instant = at ?? evidence.asOf
        self.at = instant
        let policy = Policy.standard(for: evidence.environment).with(leeway: .zero)
        let folded = Self.fold(evidence, after: earlier?.evidence, policy: policy)
        subscriptions = folded.map { result in
            ExplainedSubscription(
                state: result.state, groupID: result.state.facts.groupID,
                verdict: verdict(of: result.state.facts, at: instant, policy: policy))
        }
        purchases = evidence.purchases.compactMap { reconcilePurchase(nil, with: $0)?.state }
            .sorted { $0.transactionID < $1.transactionID }
        let purchaseEvents = Self.purchaseEvents(evidence, after: earlier?.evidence)
        events =
            previous == nil
            ? nil
            : folded.flatMap { result in
                result.events.map { ExplainedEvent(id: result.state.facts.originalTransactionID, event: $0) }
            } + purchaseEvents
    }

    private static func fold(_ evidence: Evidence, after earlier: Evidence?, policy: Policy) -> [Reconciled] {
        evidence.subscriptions.map { id in
            let stored = earlier.flatMap { earlier in
                earlier.subscriptions.contains(id)
                    ? reconcile(nil, with: earlier.slice(of: id), policy: policy).state : nil
            }
            return reconcile(stored, with: evidence.slice(of: id), policy: policy)
        }
    }

    private static func purchaseEvents(_ evidence: Evidence, after earlier: Evidence?) -> [ExplainedEvent] {
        evidence.purchases.flatMap { purchase in
            let stored = earlier?.purchases.first { $0.key == purchase.key }
                .flatMap { reconcilePurchase(nil, with: $0)?.state }
            return (reconcilePurchase(stored, with: purchase)?.events ?? []).map {
                ExplainedEvent(id: purchase.key.originalTransactionID, event: $0)
            }
        }
    }
}
