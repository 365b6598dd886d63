import Foundation
import Hummingbird
import Ledger
import Subscriptions

/// `GET /v1/apps/{bundle}/receipts/{id}`: the status of one stored receipt, never the receipt itself.
struct GetReceipt: Sendable {
    let ledger: SubscriptionLedger

    func route(behind gate: Gate) -> Route {
        gate.route(.get, "/v1/apps/{bundle}/receipts/{id}", needs: .read) { visit in
            let id = try visit.parameters.decoded("id")
            guard let number = Int64(id), let receipt = try await stored(ReceiptID(number), in: visit.bundleID) else {
                throw Problem(.notFound, "The app \(visit.bundleID) has no receipt \(id).")
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
        try await ledger.receipts(app: bundleID, id: id, limit: 1).first
    }
}
