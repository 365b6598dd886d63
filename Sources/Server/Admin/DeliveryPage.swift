import Hummingbird
import Subscriptions
import Tracking

/// `GET /admin/deliveries/{id}`: what a purchase gives or takes back, and the form to skip it while it is due.
struct DeliveryPage {
    /// The result of a skip, as the query names it.
    enum SkipResult: String, CaseIterable {
        case skipped, before

        var sentence: String {
            switch self {
            case .skipped: "The delivery is skipped. The audit has who did it, and why."
            case .before: "The delivery was skipped before; nothing was changed."
            }
        }
    }

    let id: String
    let facts: AdminTable
    let isDue: Bool
    let consequence: String
    let reasonCharactersMax = ManualDecision.reasonCharactersMax
    let formToken: String

    static func path(of delivery: Int64) -> String { "/admin/deliveries/\(delivery)" }

    init(_ delivery: Delivery, of bundleID: BundleID, formToken: String) {
        id = String(delivery.id)
        isDue = delivery.state == .due
        consequence =
            delivery.turn.isMultiple(of: 2)
            ? "The customer keeps what the delivery would take back. An order counts as refunded."
            : "The customer does not get what the delivery would give, and a refund takes nothing back. An order counts "
                + "as delivered."
        self.formToken = formToken
        facts = AdminTable(
            "The delivery",
            facts: [
                ("Customer", .text(delivery.customer, link: CustomerPage.path(of: delivery.customer, in: bundleID))),
                ("App", .text(bundleID.text)),
                ("Environment", .text(delivery.environment.rawValue)),
                ("State", .text(delivery.state.rawValue)),
                ("What", .text("\(delivery.action) (turn \(delivery.turn))")),
                ("Reason", .text(delivery.reason.replacing("_", with: " "))),
                ("Product", .text(delivery.productID.text)),
                ("Units", .text(delivery.unitsText)),
                ("Order", .text(delivery.orderID)),
                ("Transaction", .text(delivery.transactionID.text)),
                ("First transaction", .text(delivery.originalTransactionID.text)),
                ("Since", .instant(delivery.createdAt)),
                ("Settled", .instant(delivery.settledAt, orElse: "not yet")),
                ("By", .text(delivery.settledBy)),
                ("Why skipped", .text(delivery.skipReason)),
            ])
    }
}

extension AdminSite {
    func delivery(_ request: Request, _ context: AdminContext) async throws -> Response {
        let id: Int64 = try context.parameters.number("id", of: "delivery")
        let (delivery, bundleID) = try await delivery(id)
        let result = request.query("result").flatMap(DeliveryPage.SkipResult.init(rawValue:))
        return try context.page(
            "Delivery \(id)", "delivery",
            DeliveryPage(delivery, of: bundleID, formToken: context.session.formToken), notice: result?.sentence)
    }

    /// `POST /admin/deliveries/{id}/skip`: the same as `perennial delivery skip`, by the session's key.
    func skipDelivery(_: Request, _ context: AdminContext) async throws -> Response {
        let id: Int64 = try context.parameters.number("id", of: "delivery")
        guard let form = context.form, form["confirmed"] == "yes" else {
            throw Problem(.invalid, "Go back and confirm that nothing is to be done; nothing was changed.")
        }
        let (_, bundleID) = try await delivery(id)
        let skipped = try await tracker.ledger.acting(as: .key(context.session.keyID)).deliveries.skip(
            id, of: bundleID, because: form["reason"].trimmed)
        let result: DeliveryPage.SkipResult = skipped.isFirst ? .skipped : .before
        return .redirect(to: address(DeliveryPage.path(of: id), ["result": result.rawValue]))
    }

    private func delivery(_ id: Int64) async throws -> (Delivery, BundleID) {
        guard let found = try await tracker.ledger.deliveries.read(id) else {
            throw Problem(.notFound, "There is no delivery \(id).")
        }
        return found
    }
}

extension String {
    fileprivate var trimmed: String {
        let start = drop(while: \.isWhitespace)
        return String(start.reversed().drop(while: \.isWhitespace).reversed())
    }
}
