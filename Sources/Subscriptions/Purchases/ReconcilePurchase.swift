/// Merges one more answer into a one-time purchase. A pure function, without a clock. Evidence without rows confirms
/// what is stored. A refund that is gone counts as in a subscription: see ``RetractionGuard``.
///
/// Returns nil if the evidence has no rows and nothing is stored.
package func reconcilePurchase(
    _ stored: PurchaseState?, with evidence: PurchaseEvidence, policy: Policy = .standard(for: .production)
) -> ReconciledPurchase? {
    let rows = evidence.transactions.map {
        PurchaseFacts($0.speaking(inAnswerOf: evidence.asOf), key: evidence.key, asOf: evidence.asOf)
    }
    let parts = (stored.map { [$0.facts] } ?? []) + rows
    guard let first = parts.first else { return nil }
    var facts = parts.dropFirst().reduce(first) { $0.merging($1) }
    facts.asOf = max(facts.asOf, evidence.asOf)
    var retractedAt: Instant?
    if let known = stored?.facts.revocation, known.value.cancelledAt != nil {
        let said = facts.revocation
        if said.value.cancelledAt == nil {
            let earlier = stored?.refundRetractedAt
            if !RetractionGuard.counts(said.asOf, after: earlier, statedAt: known.asOf, policy: policy) {
                (facts.revocation, retractedAt) = (known, earlier ?? said.asOf)
            }
        } else if let earlier = stored?.refundRetractedAt, said.asOf < earlier {
            retractedAt = earlier
        }
    }
    let events = purchaseEvents(stored?.facts, facts)
    let changed = !events.isEmpty || !(stored?.facts.sameMeaning(as: facts) ?? false)
    let version = (stored?.version ?? 0) + (changed ? 1 : 0)
    let state = PurchaseState(facts: facts, version: version, refundRetractedAt: retractedAt)
    return ReconciledPurchase(state: state, events: events, changed: changed)
}

/// Returns both a purchase and a refund for a purchase refunded when first seen, so that sums over events stay correct.
private func purchaseEvents(_ old: PurchaseFacts?, _ new: PurchaseFacts) -> [Event] {
    let terms = new.terms.value
    var detail: [String: DetailValue] = [
        "transaction_id": .text(terms.transactionID.text), "quantity": .integer(Int64(terms.quantity)),
    ]
    var events: [Event] = []
    if old == nil {
        events.append(
            Event(
                kind: .purchaseMade, productID: new.key.productID, occurredAt: min(terms.purchasedAt, new.asOf),
                detail: detail))
    }
    let (was, isNow) = (old?.revocation.value.cancelledAt, new.revocation.value.cancelledAt)
    if let reason = new.revocation.value.reason ?? old?.revocation.value.reason { detail["reason"] = .text(reason) }
    if let isNow, was == nil {
        events.append(
            Event(
                kind: .purchaseRefunded, productID: new.key.productID, occurredAt: min(isNow, new.asOf),
                detail: detail))
    }
    if let old, was != nil, isNow == nil {
        detail["not_before"] = .text(old.asOf.iso8601)
        events.append(
            Event(kind: .refundReversed, productID: new.key.productID, occurredAt: new.asOf, detail: detail))
    }
    return events
}
