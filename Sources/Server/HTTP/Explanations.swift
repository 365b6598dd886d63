import AppStore
package import JSON
import Subscriptions
import Tracking

extension CustomerExplanation {
    /// The explanation as JSON. Every key is always present, `null` where unknown.
    package var json: JSONValue {
        [
            "bundle_id": .string(reasons.bundleID.text),
            "customer": .string(reasons.customer),
            "known": .bool(reasons.isKnown),
            "at": .string(reasons.at.iso8601),
            "summary": .string(summary.joined(separator: " ")),
            "entitlements": .array(rights.map(json(of:))),
            "subscriptions": .array(subscriptions.map(json(of:))),
            "purchases": .array(purchases.map(json(of:))),
            "receipts": .array(reasons.receipts.map(\.json)),
        ]
    }

    private func json(of right: Right) -> JSONValue {
        let winner = right.winner
        return [
            "entitlement": .string(right.name),
            "granted": .bool(winner.granted),
            "until": .optional(winner.until?.iso8601),
            "from": json(of: winner, lostBecause: nil),
            "not_from": .array(right.losers.map { json(of: $0, lostBecause: $0.loss(to: winner)) }),
        ]
    }

    private func json(of source: Reasons.Source, lostBecause loss: String?) -> JSONValue {
        let subscription = source.subscription.flatMap { id in reasons.subscriptions.first { $0.id == id } }
        let purchase = source.purchase.flatMap { id in reasons.purchases.first { $0.id == id } }
        return [
            "kind": .string(source.kind),
            "original_transaction_id": .optional(
                subscription?.state.facts.originalTransactionID.text
                    ?? purchase?.state.facts.key.originalTransactionID.text),
            "product_id": .optional(source.productID?.text),
            "environment": .string(source.environment.rawValue),
            "granted": .bool(source.granted),
            "until": .optional(source.until?.iso8601),
            "by_hand": source.manualGrant?.json ?? .null,
            "lost_because": .optional(loss),
        ]
    }

    private func json(of one: SubscriptionReasons) -> JSONValue {
        let (thing, verdict) = (thing(of: one), one.verdict(at: reasons.at))
        let explained = AnswerExplanation.ExplainedSubscription(
            state: one.state, groupID: one.state.facts.groupID, verdict: verdict)
        var fields = explained.members.merging(members(of: thing, one.environment, one.ownership)) { _, own in own }
        let isAllowed = one.allowedUntil != nil
        if isAllowed {
            fields["state"] = .string(State.awaitingRenewal.rawValue)
            fields["reason"] = .string(Reason.renewal.rawValue)
            fields["entitled"] = true
            fields["entitled_until"] = .optional(one.allowedUntil?.iso8601)
        }
        fields["in_outage_allowance"] = .bool(isAllowed)
        fields["as_of"] = .string(one.state.asOf.iso8601)
        fields["checked_at"] = .string(one.checkedAt.iso8601)
        fields["next_check_at"] = .optional(one.nextCheckAt?.iso8601)
        fields["next_check_of_receipt"] = .optional(one.polledBy?.description)
        fields["expected"] = .optional(thing.expected)
        fields["rule"] = .optional(thing.rule)
        return .object(fields)
    }

    private func json(of one: PurchaseReasons) -> JSONValue {
        let shared = members(of: thing(of: one), one.environment, one.ownership)
        return .object(one.state.members.merging(shared) { _, own in own })
    }

    private func members(
        of thing: Thing, _ environment: StoreEnvironment, _ ownership: Reasons.Ownership
    ) -> [String: JSONValue] {
        [
            "environment": .string(environment.rawValue),
            "gap": .optional(thing.gap),
            "ownership": [
                "owner": .optional(ownership.owner),
                "is_customer": .bool(ownership.isCustomer),
                "since": .optional(ownership.since?.iso8601),
                "says": .string(thing.owner),
            ],
            "says": .string(thing.conclusion),
            "because": .array(thing.steps.map(\.json)),
        ]
    }
}

extension Reasons.Source {
    fileprivate var kind: String {
        if isByHand { return "by_hand" }
        if isProvisional { return "provisional" }
        return purchase == nil ? "subscription" : "purchase"
    }
}

extension ManualGrant {
    var json: JSONValue {
        [
            "entitlement": .string(entitlement),
            "since": .string(since.iso8601),
            "until": .optional(until?.iso8601),
            "actor": .string(givenBy),
            "reason": .string(reason),
            "ended_by": .optional(endedBy),
            "end_reason": .optional(endReason),
        ]
    }
}

extension CustomerExplanation.Step {
    fileprivate var json: JSONValue {
        let seen: JSONValue =
            observation.map { seen in
                [
                    "observation_id": .string("\(seen.id)"), "receipt_id": .string(seen.receiptID.description),
                    "first_seen": .string(seen.firstAsOf.iso8601), "last_seen": .string(seen.lastAsOf.iso8601),
                ]
            } ?? .null
        return [
            "rule": .string(rule), "observation": seen, "path": .string(path), "value": .string(value),
            "says": .string(sentence),
        ]
    }
}

extension Reasons.ReceiptStanding {
    fileprivate var json: JSONValue {
        [
            "receipt_id": .string(id.description),
            "standing": .string(word),
            "received_at": .string(receivedAt.iso8601),
            "asked_at": .optional(askedAt?.iso8601),
            "verified_at": .optional(verifiedAt?.iso8601),
            "rejections": .integer(Int64(rejections)),
            "rejected_since": .optional(rejectedSince?.iso8601),
            "reason": .optional(reason),
            "next_check_at": .optional(nextCheckAt?.iso8601),
            "says": .string(sentence),
        ]
    }
}

extension AnswerExplanation {
    /// The explanation as JSON. Every key is always present, `null` where unknown.
    package var json: JSONValue {
        var fields: [String: JSONValue] = [
            "outcome": .string(finding.outcomeWord),
            "status": .optional(status.map(Int64.init)),
            "reason": .optional(finding.reasonSentence),
            "retryable": .bool(finding.isRetryable),
            "environment": .optional(environment?.rawValue),
            "bundle_id": .optional(bundleID?.text),
            "at": .string(at.iso8601),
            "subscriptions": .array(subscriptions.map { .object($0.members) }),
            "purchases": .array(purchases.map { .object($0.members) }),
        ]
        if let events { fields["events"] = .array(events.map(\.json)) }
        if let held { fields["held"] = .array(held.map(\.json)) }
        return .object(fields)
    }
}

extension AnswerExplanation.ExplainedSubscription {
    var members: [String: JSONValue] {
        let runs = verdict.state != .expired && verdict.state != .revoked
        return [
            "original_transaction_id": .string(state.facts.originalTransactionID.text),
            "subscription_group_identifier": .optional(groupID?.text),
            "product_id": .string(verdict.productID.text),
            "state": .string(verdict.state.rawValue),
            "reason": .optional(verdict.reason?.rawValue),
            "entitled": .bool(verdict.entitled),
            "expires_at": .string(verdict.expiresAt.iso8601),
            "entitled_until": .optional(verdict.entitledUntil?.iso8601),
            "will_renew": .optional(state.willRenew),
            "renews_to_product_id": .optional(state.renewsToProductID?.text),
            "flags": .array(verdict.flags.map { .string($0.rawValue) }),
            "periods": .integer(Int64(state.facts.periods.count)),
            "started_at": .string(state.startedAt.iso8601),
            "plan": .optional(state.sale.plan),
            "payment_number": .optional(runs ? state.sale.paymentNumber.map { Int64($0) } : nil),
            "payments": .optional(runs ? state.sale.payments.map { Int64($0) } : nil),
            "commitment_ends_at": .optional(runs ? state.sale.termEndsAt?.iso8601 : nil),
            "next_payment": .optional(state.nextPayment),
            "seats": .optional(state.sale.seats.map { Int64($0) }),
            "because": .array(
                verdict.because.map { ground in
                    ["rule": .string(ground.rule), "path": .string(ground.path), "value": .string(ground.value)]
                }),
        ]
    }
}

extension PurchaseState {
    fileprivate var members: [String: JSONValue] {
        [
            "transaction_id": .string(transactionID.text),
            "original_transaction_id": .string(facts.key.originalTransactionID.text),
            "product_id": .string(facts.key.productID.text),
            "quantity": .integer(Int64(quantity)),
            "purchased_at": .string(purchasedAt.iso8601),
            "revoked_at": .optional(revokedAt?.iso8601),
        ]
    }
}

extension AnswerExplanation.ExplainedEvent {
    fileprivate var json: JSONValue {
        [
            "kind": .string(event.kind.rawValue),
            "original_transaction_id": .string(id.text),
            "product_id": .string(event.productID.text),
            "at": .string(event.occurredAt.iso8601),
            "detail": .object(event.detail.mapValues(\.json)),
        ]
    }
}

extension AnswerExplanation.HeldStatement {
    fileprivate var json: JSONValue {
        [
            "original_transaction_id": .string(id.text), "transaction_id": .string(transactionID.text),
            "what": .string(what.rawValue), "since": .string(since.iso8601),
        ]
    }
}

extension SignedExplanation {
    /// The explanation as JSON. Every key is always present, `null` where unknown.
    package var json: JSONValue {
        switch outcome {
        case .failure(let refusal):
            return [
                "verdict": "refused", "reason": .string(refusal.sentence), "signed_at": nil, "chain": nil,
                "claims": nil, "unreadable": nil, "signed": [:],
            ]
        case .success(let signed):
            return [
                "verdict": "verified", "reason": nil,
                "signed_at": .string(Instant(milliseconds: signed.signedAt).iso8601),
                "chain": [
                    "subjects": .array(signed.chain.subjects.map { .string($0) }),
                    "valid_from": .string(Instant(milliseconds: signed.chain.validity.lowerBound).iso8601),
                    "valid_until": .string(Instant(milliseconds: signed.chain.validity.upperBound).iso8601),
                ],
                "claims": .object(Dictionary(claims.map { ($0.path, .string($0.value)) }) { _, last in last }),
                "unreadable": .array(unreadable.map { .string($0) }),
                "signed": .object(Dictionary(inner.map { ($0.path, $0.json) }) { _, last in last }),
            ]
        }
    }
}
