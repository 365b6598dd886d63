import Subscriptions

/// An event with its place in its stream.
struct DraftEvent: Sendable {
    let version: Int64
    let ordinal: Int16
    let asOf: Instant
    let event: Event

    /// The events of one version, in order.
    static func events(_ events: [Event], of version: Int64, asOf: Instant) -> [DraftEvent] {
        events.enumerated().map { ordinal, event in
            DraftEvent(version: version, ordinal: Int16(clamping: ordinal), asOf: asOf, event: event)
        }
    }
}

/// A subscription during a settlement: its stored state and its new state.
struct SubscriptionDraft: Sendable {
    let rowID: Int64
    let key: SubscriptionRowKey
    /// The loaded state; nil at first sight.
    let stored: SubscriptionState?
    let storedSpans: [StoredSpan]
    /// When this settlement is recorded, in microseconds: later than every instant that was recorded for it before.
    let recordedMicroseconds: Int64
    var state: SubscriptionState?
    var version: Int64
    var events: [DraftEvent] = []
    var ownership = OwnershipDraft()
    var polling: PollingDraft
    /// The receipt whose answer was folded last; nil after silence and before any.
    var answeredBy: ReceiptID?
    var policy: Policy?
    /// The instant of the last verified answer, in microseconds.
    var checkedMicroseconds: Int64?

    /// Whether this settlement folded anything into it.
    private(set) var wasChecked = false
    /// Applies the evidence of an answer about a receipt.
    mutating func apply(_ evidence: SubscriptionEvidence, about receipt: ReceiptID, policy: Policy) {
        fold(evidence, policy: policy)
        answeredBy = receipt
        polling.offer(receipt)
        checkedMicroseconds = recordedMicroseconds
    }

    /// Ends the outage allowance of `span`: folds in that no answer came until the span began.
    ///
    /// The clock moves only to that moment. So a later answer that shows a renewal after all can also report the end of
    /// that renewal.
    mutating func endAllowance(of span: StoredSpan, policy: Policy) {
        guard let state else { return }
        fold(.silence(of: key.id, until: span.from), policy: policy.with(leeway: state.leeway))
        answeredBy = nil
    }

    /// Folds in that a period moved to another subscription.
    mutating func lose(_ move: LineItemMove, keepsAccess: Bool, policy: Policy) {
        fold(move.evidence(keepsAccess: keepsAccess), policy: policy)
        checkedMicroseconds = recordedMicroseconds
    }

    /// Takes back the announcement of a period that moved here, whose charge was reported before. Without an owner, it
    /// gets that of the subscription from which the period came.
    mutating func gain(_ move: LineItemMove, of owner: Owner?) {
        events.removeAll { move.isAnnounced(by: $0.event) }
        guard let state, let owner, ownership.current == nil,
            let change = ownership.give(
                to: owner.customer, named: owner.name, because: owner.isPointer ? .pointer : .upload)
        else { return }
        note(change, of: state.timeline.span(at: state.asOf)?.productID ?? move.row.productID)
    }

    private mutating func fold(_ evidence: SubscriptionEvidence, policy: Policy) {
        let result = reconcile(state, with: evidence, policy: policy)
        state = result.state
        self.policy = policy
        wasChecked = true
        guard result.changed else { return }
        version += 1
        events += DraftEvent.events(result.events, of: version, asOf: max(result.state.asOf, evidence.asOf))
    }

    /// Takes facts with more details: a version without events, where they say more.
    mutating func addDetails(_ facts: SubscriptionFacts, policy: Policy) {
        guard let state else { return }
        if !facts.sameMeaning(as: state.facts) { version += 1 }
        self.state = SubscriptionState(
            facts: facts, policy: policy, version: version, retractions: state.retractions)
    }

    /// Replaces the stored state with another one, as a version without events.
    mutating func replace(with corrected: SubscriptionState, policy: Policy) {
        state = corrected
        self.policy = policy
        version = corrected.version
        wasChecked = true
    }

    /// Resolves the claims of an upload; a change of owner is a version of its own.
    mutating func resolveOwnership(
        among ownershipClaims: [OwnershipClaim], of receipt: ReceiptID, ownedBy owner: Owner?,
        named: OrderCustomers.Named?, policy: OwnershipPolicy
    ) {
        guard let state else { return }
        let span = state.timeline.span(at: state.asOf)
        let changes = ownership.resolveOwnership(
            among: ownershipClaims, of: receipt, ownedBy: owner, named: named, policy: policy,
            givesAccess: span?.entitled ?? false)
        for change in changes { note(change, of: span?.productID ?? "") }
    }

    /// Adds a change of owner: a version of its own, with its event.
    mutating func note(_ change: OwnershipChange, of product: ProductID) {
        guard let state else { return }
        version += 1
        events += DraftEvent.events(change.events(of: product, at: state.asOf), of: version, asOf: state.asOf)
    }
}

/// A one-time purchase during a settlement.
struct PurchaseDraft: Sendable {
    let rowID: Int64
    let key: PurchaseRowKey
    /// What its product is, by the catalog; nil: unknown.
    let kind: ProductKind?
    let stored: PurchaseState?
    /// When this settlement is recorded, in microseconds: later than every instant that was recorded for it before.
    let recordedMicroseconds: Int64
    var state: PurchaseState?
    var version: Int64
    var events: [DraftEvent] = []
    var ownership = OwnershipDraft()
    var polling: PollingDraft
    /// Whether this settlement folded anything into it.
    private(set) var wasChecked = false

    /// Applies the evidence of an answer about a receipt.
    mutating func apply(_ evidence: PurchaseEvidence, about receipt: ReceiptID, policy: Policy) {
        polling.offer(receipt)
        apply(evidence, policy: policy)
    }

    private mutating func apply(_ evidence: PurchaseEvidence, policy: Policy) {
        guard let result = reconcilePurchase(state, with: evidence, policy: policy) else { return }
        wasChecked = true
        state = result.state
        guard result.changed else { return }
        version += 1
        events += DraftEvent.events(result.events, of: version, asOf: result.state.asOf)
    }

    /// Takes facts with more details: a version without events, where they say more.
    mutating func addDetails(_ facts: PurchaseFacts) {
        guard let state else { return }
        if !facts.sameMeaning(as: state.facts) { version += 1 }
        self.state = PurchaseState(facts: facts, version: version, refundRetractedAt: state.refundRetractedAt)
        wasChecked = true
    }

    /// Notes that an answer shows that nothing changed, without naming it.
    mutating func confirm(asOf instant: Instant, policy: Policy) {
        polling.confirm()
        apply(PurchaseEvidence(key: key.purchase, asOf: instant, transactions: []), policy: policy)
    }

    /// Has it written although no answer of the batch speaks of it.
    mutating func markChanged() { wasChecked = true }

    /// Replaces the stored state with another one, as a version without events.
    mutating func correct(to rebuilt: PurchaseState) {
        version += 1
        state = PurchaseState(
            facts: rebuilt.facts, version: version, refundRetractedAt: rebuilt.refundRetractedAt)
        wasChecked = true
    }

    /// Resolves the claims of an upload; a change of owner is a version of its own.
    mutating func resolveOwnership(
        among ownershipClaims: [OwnershipClaim], of receipt: ReceiptID, ownedBy owner: Owner?,
        named: OrderCustomers.Named?, policy: OwnershipPolicy
    ) {
        guard let state else { return }
        let changes = ownership.resolveOwnership(
            among: ownershipClaims, of: receipt, ownedBy: owner, named: named, policy: policy,
            givesAccess: state.revokedAt == nil, staysWithCustomer: kind?.staysWithCustomer ?? false)
        for change in changes { note(change) }
    }

    /// Adds a change of owner: a version of its own, with its event.
    mutating func note(_ change: OwnershipChange) {
        guard let state else { return }
        version += 1
        events += DraftEvent.events(
            change.events(of: key.purchase.productID, at: state.asOf), of: version, asOf: state.asOf)
    }
}

extension Instant {
    /// An instant before everything Apple ever said.
    static let distantPast = Instant(milliseconds: .min)
}
