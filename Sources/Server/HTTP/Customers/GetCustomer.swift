import Foundation
import Hummingbird
import Ledger
import Subscriptions
import Tracking

/// `GET /v1/apps/{bundle}/customers/{id}`: a customer's subscriptions, purchases and balances, and their past,
/// present and future.
struct GetCustomer: Sendable {
    let tracker: Tracker
    let apps: KnownApps

    func addRoute(to routes: RouterGroup<KeyContext>) {
        routes.ofApp(needing: .read).get("/v1/apps/{bundle}/customers/{id}") { _, context in
            let customer = try context.parameters.decoded("id")
            try Upload.requireValidCustomerID(customer)
            let terms = tracker.terms(of: try await apps.require(context.bundleID))
            let now = Instant(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1000))
            let record = try await tracker.ledger.customers.record(of: customer, app: context.bundleID)
            return Response([
                "app": .string(context.bundleID.text),
                "customer": .string(customer),
                "subscriptions": .array(record.subscriptions.map { $0.json($0.freshness(now: now, terms)) }),
                "purchases": .array(record.purchases.map(\.json)),
                "balances": .array(record.balances.map(\.json)),
                "timeline": .array(record.timeline.map(\.json)),
                "unverified_receipts": [
                    "count": .integer(record.unverifiedReceipts),
                    "provisional_until": .optional(record.provisionalUntil?.iso8601),
                ],
            ])
        }
    }
}

extension OwnedSubscription {
    /// The subscription as routes report it.
    func json(_ freshness: Freshness) -> JSONValue { .object(members(freshness)) }

    /// The members of that object.
    func members(_ freshness: Freshness) -> [String: JSONValue] {
        [
            "environment": .string(environment.rawValue),
            "original_transaction_id": .string(id.text),
            "subscription_group_identifier": .optional(group),
            "product_id": .string(productID.text),
            "state": .string(state),
            "reason": .optional(reason),
            "entitled": .bool(entitled),
            "expires_at": .optional(expiresAt?.iso8601),
            "entitled_until": .optional(entitledUntil?.iso8601),
            "will_renew": .optional(willRenew),
            "renews_to_product_id": .optional(renewsTo?.text),
            "flags": .array(flags.map { .string($0) }),
            "periods": .integer(Int64(periods)),
            "started_at": .optional(startedAt?.iso8601),
            "plan": .optional(sale.plan),
            "payment_number": .optional(sale.paymentNumber.map { Int64($0) }),
            "payments": .optional(sale.payments.map { Int64($0) }),
            "commitment_ends_at": .optional(sale.termEndsAt?.iso8601),
            "next_payment": .optional(nextPayment),
            "seats": .optional(sale.seats.map { Int64($0) }),
            "as_of": .optional(asOf?.iso8601),
            "checked_at": .optional(checkedAt?.iso8601),
            "stale": .bool(freshness.isStale),
            "max_age_s": .optional(freshness.ageSecondsMax),
        ]
    }
}

extension OwnedPurchase {
    fileprivate var json: JSONValue {
        [
            "environment": .string(environment.rawValue),
            "transaction_id": .string(transactionID),
            "original_transaction_id": .string(originalTransactionID.text),
            "product_id": .string(productID.text),
            "quantity": .integer(Int64(quantity)),
            "purchased_at": .string(purchasedAt.iso8601),
            "revoked_at": .optional(revokedAt?.iso8601),
        ]
    }
}

extension PurchaseHistory.Balance {
    fileprivate var json: JSONValue {
        ["environment": .string(environment.rawValue), "credit": .string(credit), "units": .integer(units)]
    }
}

extension TimelineSpan {
    fileprivate var json: JSONValue {
        [
            "environment": .string(environment.rawValue),
            "original_transaction_id": .string(id.text),
            "from": .optional(from?.iso8601),
            "until": .optional(until?.iso8601),
            "state": .string(state),
            "reason": .optional(reason),
            "entitled": .bool(entitled),
            "product_id": .string(productID.text),
            "allowed_until": .optional(allowedUntil?.iso8601),
        ]
    }
}
