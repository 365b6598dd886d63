import AppStore
import Ledger
package import Subscriptions

/// The meaning of one answer of verifyReceipt at an instant, with the reasons: no database, no network.
package struct Explanation: Sendable {
    /// One subscription of the answer.
    package struct ExplainedSubscription: Sendable {
        /// Its facts and timeline.
        package let state: SubscriptionState
        /// Its subscription group, where Apple names it.
        package let groupID: SubscriptionGroupID?
        /// Its state at the instant, with the reasons.
        package let verdict: Verdict

        /// Creates a subscription with its verdict.
        package init(state: SubscriptionState, groupID: SubscriptionGroupID?, verdict: Verdict) {
            self.state = state
            self.groupID = groupID
            self.verdict = verdict
        }
    }

    /// An event between the stored answer and this one.
    package struct ExplainedEvent: Sendable {
        /// The subscription or purchase.
        package let id: OriginalTransactionID
        /// The event.
        package let event: Event
    }

    /// Something that the earlier answer stated and this one takes back. It stands until a second answer takes it back, too.
    package struct HeldStatement: Sendable {
        /// The subscription or purchase.
        package let id: OriginalTransactionID
        /// The transaction.
        package let transactionID: TransactionID
        /// What is taken back.
        package let what: Retraction.What
        /// The instant of this answer.
        package let since: Instant
    }

    /// What the answer proves.
    package let finding: Finding
    /// Apple's status code; nil where the answer has none.
    package let status: Int?
    /// The environment that the answer names.
    package let environment: StoreEnvironment?
    /// The app that the answer names.
    package let bundleID: BundleID?
    /// The instant that the explanation is for.
    package let at: Instant
    /// The subscriptions of the answer.
    package let subscriptions: [ExplainedSubscription]
    /// The one-time purchases of the answer.
    package let purchases: [PurchaseState]
    /// Paths of rows that were skipped because they cannot be read.
    let unreadableRows: [String]
    /// Nil when there was no earlier answer to compare with.
    package let events: [ExplainedEvent]?
    /// What this answer takes back of the earlier one; nil likewise.
    package let held: [HeldStatement]?

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
            (events, held) = previous == nil ? (nil, nil) : ([], [])
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
        let bought = Self.purchases(evidence, after: earlier?.evidence)
        purchases = bought.map(\.state).sorted { $0.transactionID < $1.transactionID }
        guard previous != nil else {
            (events, held) = (nil, nil)
            return
        }
        events =
            folded.flatMap { result in
                result.events.map { ExplainedEvent(id: result.state.facts.originalTransactionID, event: $0) }
            }
            + bought.flatMap { result in
                result.events.map { ExplainedEvent(id: result.state.facts.key.originalTransactionID, event: $0) }
            }
        held = folded.flatMap { HeldStatement.all(in: $0.state) } + bought.compactMap { HeldStatement(in: $0.state) }
    }

    private static func fold(_ evidence: Evidence, after earlier: Evidence?, policy: Policy) -> [Reconciled] {
        var stored: [OriginalTransactionID: SubscriptionState] = [:]
        for id in earlier?.subscriptions ?? [] {
            stored[id] = earlier.map { reconcile(nil, with: $0.slice(of: id), policy: policy).state }
        }
        var folded: [OriginalTransactionID: Reconciled] = [:]
        let before = evidence.beforeMoves(among: stored.sorted { $0.key < $1.key }.map(\.value.facts))
        for id in evidence.subscriptions {
            let first = before[id].map { reconcile(stored[id], with: $0, policy: policy) }
            var result = reconcile(first?.state ?? stored[id], with: evidence.slice(of: id), policy: policy)
            result.events = (first?.events ?? []) + result.events
            folded[id] = result
        }
        let known = stored.merging(folded.mapValues(\.state)) { $1 }.mapValues(\.facts)
        for move in evidence.moves(among: known.sorted { $0.key < $1.key }.map(\.value)) {
            let state = folded[move.from]?.state ?? stored[move.from]
            var moved = reconcile(state, with: move.evidence(), policy: policy)
            moved.events = (folded[move.from]?.events ?? []) + moved.events
            folded[move.from] = moved
            folded[move.to]?.events.removeAll(where: move.isAnnounced)
        }
        return folded.sorted { $0.key < $1.key }.map(\.value)
    }

    private static func purchases(_ evidence: Evidence, after earlier: Evidence?) -> [ReconciledPurchase] {
        evidence.purchases.compactMap { purchase in
            let stored = earlier?.purchases.first { $0.key == purchase.key }
                .flatMap { reconcilePurchase(nil, with: $0)?.state }
            return reconcilePurchase(stored, with: purchase)
        }
    }
}

extension Explanation.HeldStatement {
    fileprivate static func all(in state: SubscriptionState) -> [Explanation.HeldStatement] {
        state.retractions.map {
            Explanation.HeldStatement(
                id: state.facts.originalTransactionID, transactionID: $0.transactionID, what: $0.what, since: $0.since)
        }
    }

    fileprivate init?(in state: PurchaseState) {
        guard let since = state.refundRetractedAt else { return nil }
        self.init(
            id: state.facts.key.originalTransactionID, transactionID: state.transactionID, what: .revocation,
            since: since)
    }
}

extension KeptAnswer {
    /// The evidence in the stored answer by the present rules; nil when it does not count as verified by these rules.
    package var evidence: Evidence? {
        if let contents = ServerContents(reading: body) {
            let instant = observation.firstAsOf
            return Evidence(in: contents, bundleID: bundleID, asOf: instant, claimedAt: instant)
        }
        let answer = AppStoreAnswer(body: body, from: Endpoint(environment))
        let settled = observation.firstAsOf
        return Finding(in: answer, for: bundleID, clock: settled, limit: .settled(settled)).evidence
    }
}

extension AppStoreAnswer {
    /// Creates an answer from storage instead of the network.
    init(body: [UInt8], from endpoint: Endpoint) {
        var response: VerifyReceiptResponse?
        var failure: String?
        do {
            response = try VerifyReceiptResponse(parsing: body)
        } catch {
            failure = "\(error)"
        }
        self.init(
            environment: endpoint, httpStatus: nil, body: body, response: response, failure: failure, calls: 0,
            usedPreviousSecret: false, elapsedMilliseconds: 0, correlationID: nil)
    }
}
