import Hummingbird
import Ledger
import Subscriptions
import Tracking

/// `/admin/customer/act`: the form of an action, its confirmation, and the action itself.
struct ActionPage {
    /// A field that the form sends unseen.
    struct Hidden {
        let name: String
        let value: String
    }

    /// The most receipts that one *Ask Apple now* asks about.
    static let receiptsMax = 5
    static let path = "/admin/customer/act"

    let explanation: String
    let formToken: String
    let back: String
    /// What will be done; nil while the form is filled in.
    let sentence: String?
    /// Who decides and why, for the confirmation.
    let decision: String?
    let hidden: [Hidden]
    let button: String
    let needsEntitlement: Bool
    let needsInto: Bool
    let needsDecision: Bool
    let entitlement: String
    let actorCharactersMax = ManualDecision.actorCharactersMax
    let reasonCharactersMax = ManualDecision.reasonCharactersMax

    /// Returns the address of an action's form.
    static func path(_ action: CustomerAction, _ customer: String, in app: BundleID, entitlement: String = "") -> String
    {
        entitlement.isEmpty
            ? address(path, ["action": action.rawValue, "app": app.text, "id": customer])
            : address(path, ["action": action.rawValue, "app": app.text, "id": customer, "entitlement": entitlement])
    }

    /// Creates the form, or the confirmation of what it sent.
    init(_ request: ActionRequest, formToken: String, confirming: Bool) throws {
        let action = request.action
        explanation = action.explanation
        self.formToken = formToken
        back = CustomerPage.path(of: request.customer, in: request.app)
        sentence = confirming ? try request.sentence : nil
        decision = confirming && action.isDecision ? "Decided by \(request.actor): \(request.reason)" : nil
        // The form asks for the rest.
        let isFixed = confirming || action == .check
        hidden = request.fields.filter { isFixed || ["action", "app", "id"].contains($0.name) || action == .revoke }
            .map { Hidden(name: $0.name, value: $0.value) }
        button = confirming ? "Yes: \(action.title.lowercasedFirst)" : "Continue"
        needsEntitlement = !isFixed && action == .grant
        needsInto = !isFixed && action == .merge
        needsDecision = !isFixed && action.isDecision
        entitlement = request.entitlement
    }
}

extension AdminSite {
    /// `GET /admin/customer/act`: the form.
    func actForm(_ request: Request, _ context: AdminContext) async throws -> Response {
        let asked = try ActionRequest { request.query($0[...]) ?? "" }
        try await requireKnown(asked)
        return try page(of: asked, context, confirming: asked.action == .check)
    }

    /// `POST /admin/customer/act`: the confirmation of a form, and once it is confirmed, the action.
    func act(_: Request, _ context: AdminContext) async throws -> Response {
        guard let form = context.form else { throw Problem(.invalid, "The form is empty.") }
        let asked = try ActionRequest { form[$0] }
        try asked.requireComplete()
        try await requireKnown(asked)
        guard form["confirmed"] == "yes" else { return try page(of: asked, context, confirming: true) }
        let (customer, result) = try await perform(asked, by: .key(context.session.keyID))
        let path = address(
            "/admin/customer", ["app": asked.app.text, "id": customer, "result": result])
        return Response.redirect(to: path)
    }

    private func page(of asked: ActionRequest, _ context: AdminContext, confirming: Bool) throws -> Response {
        try AdminPage(
            title: "\(asked.action.title): \(asked.customer)", template: "act",
            content: ActionPage(asked, formToken: context.session.formToken, confirming: confirming),
            session: context.session
        ).response()
    }

    private func requireKnown(_ asked: ActionRequest) async throws {
        let ledger = tracker.ledger
        guard try await ledger.customers.isKnown(asked.customer, of: asked.app) else {
            throw Problem(.notFound, "No customer of the app \(asked.app) has the id \(asked.customer).")
        }
        guard asked.action == .grant, !asked.entitlement.isEmpty else { return }
        try await ledger.apps.requireKnownEntitlement(
            asked.entitlement, of: asked.app, orElse: "`perennial grant --force` grants a name to come.")
    }

    /// Does what was asked. Returns the customer to show and the result for the query.
    private func perform(_ asked: ActionRequest, by person: Actor) async throws -> (String, String) {
        let customers = tracker.ledger.acting(as: person).customers
        switch asked.action {
        case .grant:
            _ = try await customers.grant(
                asked.entitlement, to: asked.customer, of: asked.app, until: try asked.until,
                deciding: try asked.decision)
        case .revoke:
            _ = try await customers.revokeGrant(
                of: asked.entitlement, from: asked.customer, of: asked.app, deciding: try asked.decision)
        case .merge:
            let merge = try await customers.merge(
                asked.customer, into: asked.into, of: asked.app, deciding: try asked.decision)
            return (merge.into, asked.action.rawValue)
        case .check: return (asked.customer, try await checkReceipts(of: asked, by: person))
        }
        return (asked.customer, asked.action.rawValue)
    }

    /// Asks Apple about the receipts that poll the customer's subscriptions. Returns the result for the query.
    private func checkReceipts(of asked: ActionRequest, by person: Actor) async throws -> String {
        let explanation = try await CustomerExplanation(
            in: tracker.ledger, app: asked.app, customer: asked.customer)
        let polled = Set(explanation.subscriptions.compactMap(\.polledBy))
        let receipts = polled.isEmpty ? Set(explanation.reasons.receipts.map(\.id)) : polled
        var results: Set<ReceiptPage.CheckResult> = []
        for receipt in receipts.sorted(by: { $0.number > $1.number }).prefix(ActionPage.receiptsMax) {
            results.insert(try await check(receipt, by: person))
        }
        let order: [ReceiptPage.CheckResult] = [.checked, .lately, .busy]
        return order.first(where: results.contains)?.rawValue ?? ReceiptPage.CheckResult.nothing.rawValue
    }
}

extension String {
    /// The text with a small first letter, for the middle of a sentence.
    fileprivate var lowercasedFirst: String { prefix(1).lowercased() + dropFirst() }
}
