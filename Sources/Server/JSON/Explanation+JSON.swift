import Ledger
import Subscriptions
import Tracking

extension Explanation {
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
            "subscriptions": .array(subscriptions.map(\.json)),
            "purchases": .array(purchases.map(\.json)),
        ]
        if let events { fields["events"] = .array(events.map(\.json)) }
        if let held { fields["held"] = .array(held.map(\.json)) }
        return .object(fields)
    }
}

extension Explanation.ExplainedSubscription {
    var json: JSONValue {
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
    fileprivate var json: JSONValue {
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

extension Explanation.ExplainedEvent {
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

extension Explanation.HeldStatement {
    fileprivate var json: JSONValue {
        [
            "original_transaction_id": .string(id.text), "transaction_id": .string(transactionID.text),
            "what": .string(what.rawValue), "since": .string(since.iso8601),
        ]
    }
}

extension JSONValue {
    /// Returns a whole number, or `null` when there is none.
    package static func optional(_ number: Int64?) -> JSONValue {
        number.map { .integer($0) } ?? .null
    }
}

extension DetailValue {
    /// The detail as JSON.
    package var json: JSONValue {
        switch self {
        case .text(let text): .string(text)
        case .integer(let number): .integer(number)
        case .flag(let flag): .bool(flag)
        }
    }
}
