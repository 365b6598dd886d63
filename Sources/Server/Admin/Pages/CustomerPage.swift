import Hummingbird
import Ledger
import Subscriptions
import Tracking

/// `GET /admin/customer`: the subscriptions, purchases, orders, deliveries, history and receipts of one customer, with an
/// explanation.
struct CustomerPage {
    /// The most rows of each table.
    static let rowsMax = 200

    /// A link to the form of an action.
    struct Action {
        let title: String
        let path: String
    }

    let app: String
    let actions: [Action]
    /// What Apple can be asked.
    let supportActions: [Action]
    /// What the customer may use, and why.
    let reasons: ReasonViews
    /// The running manual grants; nil where there are none.
    let grants: AdminTable?
    let subscriptions: AdminTable
    let purchases: AdminTable
    /// What the customer ordered and what was delivered.
    let bought: PurchaseTables
    let timeline: AdminTable
    let events: AdminTable
    let receipts: AdminTable

    /// Returns the path of a customer's page.
    static func path(of customer: String, in bundleID: BundleID) -> String {
        address("/admin/customer", ["app": bundleID.text, "id": customer])
    }

    init(
        _ explanation: CustomerExplanation, timeline: [RecordedSpan], events: [RecordedEvent],
        history: PurchaseHistory, receipts: [StoredReceipt], bodies: [Int64: [UInt8]]
    ) {
        bought = PurchaseTables(history)
        let (bundleID, customer) = (explanation.reasons.bundleID, explanation.reasons.customer)
        app = bundleID.text
        actions = CustomerAction.allCases.filter { $0 != .revoke }.map {
            Action(title: $0.title, path: ActionPage.path($0, customer, in: bundleID))
        }
        supportActions = SupportAction.ofCustomers.filter { !SupportItem.items(for: $0, of: explanation).isEmpty }.map {
            Action(title: $0.title, path: SupportPage.path($0, customer, in: bundleID))
        }
        reasons = ReasonViews(explanation, bodies: bodies)
        grants = Self.grants(explanation)
        subscriptions = Self.subscriptions(explanation)
        purchases = AdminTable(
            "One-time purchases", ["Transaction", "Product", "Quantity", "Purchased", "Refunded"], isStacked: true,
            explanation.purchases.map { one in
                [
                    .text(one.state.transactionID.text), .text(one.state.facts.key.productID.text),
                    .number(one.state.quantity), .instant(one.state.purchasedAt), .instant(one.state.revokedAt),
                ]
            })
        self.timeline = AdminTable(
            "Timeline, newest period first; a period that begins later holds if nothing more is learnt",
            ["Subscription", "From", "Until", "State", "Access", "Product", "Special"], isStacked: true,
            timeline.map { one in
                [
                    .text(one.originalTransactionID.text), .instant(one.since), .instant(one.until, orElse: "open"),
                    .state(one.state, one.reason), .text(one.entitled ? "yes" : "no"),
                    .text(one.productID.text), .text(one.flags.isEmpty ? nil : one.flags.joined(separator: ", ")),
                ]
            })
        self.events = AdminTable(
            "What happened, newest first", ["Event", "Subscription", "Product", "Happened", "Recorded"],
            isStacked: true,
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
            isStacked: true,
            explanation.subscriptions.map { one in
                let verdict = one.verdict(at: explanation.reasons.at)
                let isAllowed = one.allowedUntil != nil
                let state = isAllowed ? State.awaitingRenewal : verdict.state
                let reason = isAllowed ? Reason.renewal : verdict.reason
                let until = one.allowedUntil ?? verdict.entitledUntil
                return [
                    .text(one.state.facts.originalTransactionID.text),
                    .text(
                        [verdict.productID.text, one.state.sale.words].compactMap(\.self).joined(separator: ", ")),
                    .state(state.rawValue, reason?.rawValue),
                    .instant(until, orElse: "no access", toMinute: true), .instant(verdict.expiresAt, toMinute: true),
                    .instant(one.checkedAt, toMinute: true),
                    .instant(one.nextCheckAt, orElse: "no more", toMinute: true),
                ]
            })
    }
}

extension CustomerPage {
    private static func grants(_ explanation: CustomerExplanation) -> AdminTable? {
        let reasons = explanation.reasons
        let running = reasons.sources.filter { $0.isByHand && $0.granted }
        guard !running.isEmpty else { return nil }
        return AdminTable(
            "Manual grants", ["Entitlement", "Since", "Until", "By", "Why", "Action"],
            running.map { source in
                [
                    .text(source.entitlement), .instant(source.manualGrant?.since),
                    .instant(source.until, orElse: "no end"), .text(source.manualGrant?.givenBy),
                    .prose(source.manualGrant?.reason),
                    .text(
                        "End it",
                        link: ActionPage.path(
                            .revoke, reasons.customer, in: reasons.bundleID, entitlement: source.entitlement)),
                ]
            })
    }

    /// The sentence for a result that the query names; nil for another word.
    fileprivate static func sentence(for result: String) -> String? {
        ReceiptPage.CheckResult(rawValue: result)?.sentence ?? CustomerAction(rawValue: result)?.done
            ?? SupportAction.sentence(for: result)
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
            receipts: try await ledger.customers.receipts(app: bundleID, customer: name, limit: CustomerPage.rowsMax),
            bodies: try await ledger.admin.bodies(of: explanation.observations))
        return try AdminPage(
            title: "Customer \(name)", template: "customer", content: content, session: context.session,
            notice: request.query("result").flatMap(CustomerPage.sentence(for:))
        ).response()
    }
}
