import Ledger
import Subscriptions

extension StoredReceipt {
    /// The receipt as GET receipts reports it; its outcome is `pending` until Apple's first answer.
    var json: JSONValue {
        [
            "receipt_id": .string(id.description),
            "app": .string(bundleID.text),
            "customers": .array(customers.map { .string($0) }),
            "subscriptions": .array(subscriptions.map { .string($0.text) }),
            "environment": .optional(environment?.rawValue),
            "outcome": .string(outcome ?? "pending"),
            "reason": .optional(reason),
            "received_at": .string(receivedAt.iso8601),
            "asked_at": .optional(askedAt?.iso8601),
            "verified_at": .optional(verifiedAt?.iso8601),
            "next_check_at": .optional(nextCheckAt?.iso8601),
        ]
    }
}
