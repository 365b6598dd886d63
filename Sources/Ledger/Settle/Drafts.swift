import Subscriptions

/// An event with its place in its stream.
struct DraftEvent: Sendable {
    let version: Int64
    let ordinal: Int16
    let asOf: Instant
    let event: Event
}

/// A subscription while it is being settled: what is stored, and what it becomes.
struct SubscriptionDraft: Sendable {
    let rowID: Int64
    let key: SubscriptionKey
    /// What was loaded; nil at first sight.
    let stored: SubscriptionState?
    let storedSpans: [StoredSpan]
    /// Later than every instant recorded for it before.
    let recordedAt: Instant
    var state: SubscriptionState?
    var version: Int64
    var events: [DraftEvent] = []
    var owner: Owner?
    var newOwner: Owner?
    var answers: [ReceiptID: [String: OwnershipAnswer]] = [:]
    var polledBy: ReceiptID?
    var polledByCreatedAt: Instant?
    var nextCheckAt: Instant?
    /// Whether a verified answer spoke of it in this settlement.
    var wasChecked = false

    /// Applies one answer's evidence.
    mutating func apply(_ evidence: SubscriptionEvidence, policy: Policy, by reconcile: Reconcile) {
        let result = reconcile(state, evidence, policy)
        wasChecked = true
        state = result.state
        guard result.changed else { return }
        append(result.events, asOf: evidence.asOf)
    }

    /// Makes the next version of the stream with its events.
    mutating func append(_ new: [Event], asOf: Instant) {
        version += 1
        for (ordinal, event) in new.enumerated() {
            events.append(
                DraftEvent(version: version, ordinal: Int16(clamping: ordinal), asOf: asOf, event: event))
        }
    }

    /// Lets the newest verified receipt that holds the subscription do the polling.
    mutating func offerPolling(by receipt: ReceiptID, createdAt: Instant?) {
        let isNewer = (createdAt ?? .distantPast) > (polledByCreatedAt ?? .distantPast)
        guard polledBy == nil || polledBy == receipt || isNewer else { return }
        polledBy = receipt
        polledByCreatedAt = max(createdAt ?? .distantPast, polledByCreatedAt ?? .distantPast)
    }

    /// Serves the claims of an upload to this subscription, in order.
    mutating func serve(_ claims: [OwnershipClaim], of receipt: ReceiptID, policy: OwnershipPolicy) {
        guard let state else { return }
        let asOf = state.facts.asOf
        let givesAccess = state.timeline.span(at: asOf)?.entitled ?? false
        let token = state.facts.appAccountToken
        let first = owner == nil ? firstOwner(among: claims, accountToken: token) : nil
        for claim in [first].compactMap({ $0 }) + claims.filter({ $0 != first }) {
            let answer = decideOwnership(
                of: claim, owner: newOwner ?? owner, policy: policy, accountToken: token, givesAccess: givesAccess)
            answers[receipt, default: [:]][claim.name] = answer
            take(claim, answer, asOf: asOf)
        }
    }

    private mutating func take(_ claim: OwnershipClaim, _ answer: OwnershipAnswer, asOf: Instant) {
        switch answer {
        case .held, .refused: return
        case .assigned:
            newOwner = Owner(customer: claim.customer, rowID: nil, transfers: 0)
            append([ownershipEvent(.ownershipAssigned, asOf: asOf)], asOf: asOf)
        case .transferred:
            let transfers = (newOwner ?? owner)?.transfers ?? 0
            newOwner = Owner(customer: claim.customer, rowID: nil, transfers: transfers + 1)
            append([ownershipEvent(.ownershipTransferred, asOf: asOf)], asOf: asOf)
        }
    }

    private func ownershipEvent(_ kind: EventKind, asOf: Instant) -> Event {
        let product = state?.timeline.span(at: asOf)?.productID ?? ""
        return Event(kind: kind, productID: product, occurredAt: asOf, detail: [:])
    }
}

extension Instant {
    /// Before everything Apple ever said.
    static let distantPast = Instant(milliseconds: .min)
}
