import AppStore
import Hummingbird
import Ledger
import Subscriptions
import Tracking

/// `POST /v1/orders/{id}/receipt`: a device sends a receipt for an order. The answer shows what the order is about and
/// nothing else, because the proof does not show that the receipt is the sender's.
struct PostOrderReceipt: Sendable {
    let uploads: ReceiptUploads
    let calls: DeviceCalls

    private var orders: LedgerOrders { uploads.tracker.ledger.orders }

    func addRoute(to routes: some RouterMethods<CallerContext>) {
        routes.post("/v1/orders/{id}/receipt") { request, context in
            let spelling = try context.parameters.decoded("id")
            let id = LedgerOrders.canonical(spelling) ?? spelling
            let body = try await calls.body(OrderReceiptBody.self, of: request, about: id, context) { body in
                let receipt = try ReceiptData(normalising: body.receipt)
                return try await orders.accepts(OrderProof(of: spelling, receipt: receipt.bytes, code: body.proof))
            }
            guard let party = try await orders.party(to: id) else { throw DeviceCalls.refused }
            let submission = Submission(
                bundleID: party.app, customer: nil, receipt: body.receipt,
                order: OrderReference(id: id, isProved: true))
            return try response(
                to: try await uploads.answer(
                    to: submission, of: party.customer,
                    asking: UploadQuestion(purpose: .purchase, orderID: id, transactionID: nil), by: nil))
        }
    }

    private func response(to answer: UploadAnswer) throws -> Response {
        switch answer {
        case .verified(let settled, _, let result):
            let own: [String: JSONValue] = [
                "next_check_at": .optional(settled.nextCheckAt?.iso8601),
                "outcome": .string(settled.outcome.rawValue),
                "receipt_id": .string(settled.receiptID.description),
            ]
            return Response(
                .object(own.merging(result.deviceMembers) { own, _ in own }),
                status: result.word == .absent ? .accepted : .ok)
        // Why there is no verdict is the operator's concern: it may name the app's secrets.
        case .waiting(let receiptID, let outcome, _, let result):
            let own: [String: JSONValue] = [
                "outcome": .string(outcome), "receipt_id": .string(receiptID.description),
                "reason": "The check is pending; send the receipt again after retry_after_s.",
            ]
            return Response(.object(own.merging(result.deviceMembers) { own, _ in own }), status: .accepted)
        case .rejected(let settled, let result):
            throw Problem(
                .receiptRejected, settled.reason ?? "Apple does not vouch for the receipt.",
                members: result.deviceMembers.merging([
                    "receipt_id": .string(settled.receiptID.description),
                    "outcome": .string(settled.outcome.rawValue),
                ]) { _, own in own })
        }
    }
}

extension UploadResult {
    /// The members that a device gets, by name: those of its order, without the customer's name.
    fileprivate var deviceMembers: [String: JSONValue] {
        var own = self
        own.contents = order.map(contents.only(of:)) ?? .none
        var members = own.members
        members["purchases"] = nil
        members["order"] = order.map { $0.json.withoutCustomer } ?? .null
        members["deliveries"] = .array(own.contents.deliveries.map { $0.json.withoutCustomer })
        return members
    }
}

extension JSONValue {
    /// The same with `null` for the customer.
    fileprivate var withoutCustomer: JSONValue {
        guard case .object(var members) = self else { return self }
        members["customer"] = .null
        return .object(members)
    }
}

/// The body of a device's upload.
private struct OrderReceiptBody: KnownFields {
    /// The receipt in Base64, in the form that the device gave.
    let receipt: String
    /// The proof over the decoded receipt.
    let proof: String

    enum CodingKeys: CodingKey, CaseIterable {
        case receipt, proof
    }
}
