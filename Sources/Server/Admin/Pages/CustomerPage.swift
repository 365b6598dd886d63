import Hummingbird
import Ledger
import Subscriptions
import Tracking

/// `GET /admin/customer`: the subscriptions, purchases, orders, deliveries, history and receipts of one customer, with an
/// explanation.
struct CustomerPage {
    /// The most rows of each table.
    static let rowsMax = 200

    let app: String
    let subscriptions: AdminTable
    let purchases: AdminTable
    /// What the customer ordered and what was delivered.
    let bought: PurchaseTables
    let timeline: AdminTable
    let events: AdminTable
    let receipts: AdminTable
    /// The output of `perennial explain`.
    let explanation: String

    /// Returns the path of a customer's page.
    static func path(of customer: String, in bundleID: BundleID) -> String {
        address("/admin/customer", ["app": bundleID.text, "id": customer])
    }

    init(
        _ explanation: CustomerExplanation, timeline: [RecordedSpan], events: [RecordedEvent],
        history: PurchaseHistory, receipts: [StoredReceipt]
    ) {
        bought = PurchaseTables(history)
        app = explanation.reasons.bundleID.text
        self.explanation = explanation.text
        subscriptions = Self.subscriptions(explanation)
        purchases = AdminTable(
            "One-time purchases", ["Transaction", "Product", "Quantity", "Purchased", "Refunded"],
            explanation.purchases.map { one in
                [
                    .text(one.state.transactionID.text), .text(one.state.facts.key.productID.text),
                    .number(one.state.quantity), .instant(one.state.purchasedAt), .instant(one.state.revokedAt),
                ]
            })
        self.timeline = AdminTable(
            "Timeline, newest stretch first; a stretch that begins later holds if nothing more is learnt",
            ["Subscription", "From", "Until", "State", "Access", "Product", "Special"],
            timeline.map { one in
                [
                    .text(one.originalTransactionID.text), .instant(one.since), .instant(one.until, orElse: "open"),
                    .text(one.reason.map { "\(one.state) (\($0))" } ?? one.state), .text(one.entitled ? "yes" : "no"),
                    .text(one.productID.text), .text(one.flags.isEmpty ? nil : one.flags.joined(separator: ", ")),
                ]
            })
        self.events = AdminTable(
            "What happened, newest first", ["Event", "Subscription", "Product", "Happened", "Recorded"],
            events.map { one in
                [
                    .text(one.kind), .text(one.originalTransactionID.text), .text(one.productID.text),
                    .instant(one.occurredAt), .instant(one.recordedAt),
                ]
            })
        self.receipts = ReceiptPage.table(of: receipts)
    }

    private static func subscriptions(_ explanation: CustomerExplanation) -> AdminTable {
        AdminTable(
            "Subscriptions", ["Subscription", "Product", "State", "Access until", "Expires", "Checked", "Next check"],
            explanation.subscriptions.map { one in
                let verdict = one.verdict(at: explanation.reasons.at)
                let state = one.allowedUntil == nil ? verdict.state.rawValue : State.awaitingRenewal.rawValue
                let until = one.allowedUntil ?? verdict.entitledUntil
                return [
                    .text(one.state.facts.originalTransactionID.text), .text(verdict.productID.text),
                    .text(verdict.reason.map { "\(state) (\($0.rawValue))" } ?? state),
                    .instant(until, orElse: "no access"), .instant(verdict.expiresAt), .instant(one.checkedAt),
                    .instant(one.nextCheckAt, orElse: "no more"),
                ]
            })
    }
}

extension AdminSite {
    /// `GET /admin/customer`
    func customer(_ request: Request, _ context: AdminContext) async throws -> Response {
        guard let app = request.query("app"), let name = request.query("id") else {
            throw Problem(.invalid, "The address names no app and customer; look them up under Customers.")
        }
        let (ledger, bundleID) = (tracker.ledger, BundleID(app))
        let explanation = try await CustomerExplanation(in: ledger, app: bundleID, customer: name)
        guard explanation.reasons.isKnown else {
            throw Problem(.notFound, "No customer of the app \(bundleID) has the id \(name).")
        }
        let content = CustomerPage(
            explanation,
            timeline: try await ledger.admin.timelines(app: bundleID, customer: name, limit: CustomerPage.rowsMax),
            events: try await ledger.admin.events(app: bundleID, customer: name, limit: CustomerPage.rowsMax),
            history: try await ledger.customers.purchaseHistory(
                of: name, in: bundleID, limit: Int32(PurchaseTables.rowsMax)),
            receipts: try await ledger.customers.receipts(app: bundleID, customer: name, limit: CustomerPage.rowsMax))
        return try AdminPage(
            title: "Customer \(name)", template: "customer", content: content, session: context.session
        ).response()
    }
}
