import Foundation
import Hummingbird
import Ledger
import Subscriptions

/// `GET /v1/apps/{bundle}/receipts/{id}`: the status of one stored receipt, never the receipt itself.
struct GetReceipt: Sendable {
    let ledger: SubscriptionLedger

    func addRoute(to routes: RouterGroup<KeyContext>) {
        routes.ofApp(needing: .read).get("/v1/apps/{bundle}/receipts/{id}") { _, context in
            let id = try context.parameters.decoded("id")
            guard let number = Int64(id), let receipt = try await stored(ReceiptID(number), in: context.bundleID) else {
                throw Problem(.notFound, "The app \(context.bundleID) has no receipt \(id).")
            }
            return Response(receipt.json)
        }
    }

    /// Returns the path of a receipt, as `Location` names it.
    static func path(of receiptID: ReceiptID, in bundleID: BundleID) -> String {
        var allowed = CharacterSet.alphanumerics
        allowed.insert(charactersIn: "-._~")
        let bundle = bundleID.text.addingPercentEncoding(withAllowedCharacters: allowed) ?? bundleID.text
        return "/v1/apps/\(bundle)/receipts/\(receiptID)"
    }

    private func stored(_ id: ReceiptID, in bundleID: BundleID) async throws -> StoredReceipt? {
        try await ledger.customers.receipts(app: bundleID, id: id, limit: 1).first
    }
}

extension StoredReceipt {
    /// The receipt as GET receipts reports it; its outcome is `pending` until Apple's first answer.
    var json: JSONValue {
        [
            "receipt_id": .string(id.description),
            "app": .string(bundleID.text),
            "customers": .array(customers.map { .string($0) }),
            "subscriptions": .array(subscriptions.map { .string($0.text) }),
            "form": .string(form.rawValue),
            "vouching": .string(vouching.rawValue),
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
