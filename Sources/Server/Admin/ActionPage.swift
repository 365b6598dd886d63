import Hummingbird
import Subscriptions
import Tracking

/// A field that a form sends unseen.
struct HiddenField {
    let name, value: String
}

/// `/admin/customer/act`: the form of an action, its confirmation, and the action itself.
struct ActionPage {
    /// The most receipts that one *Ask Apple now* asks about.
    static let receiptsMax = 5
    static let path = "/admin/customer/act"

    let explanation, formToken, back: String
    /// What will be done; nil while the form is filled in.
    let sentence: String?
    /// Who decides and why, for the confirmation.
    let decision: String?
    let hidden: [HiddenField]
    let button: String
    let needsEntitlement, needsInto, needsDecision: Bool
    let entitlement: String
    let actorCharactersMax = ManualDecision.actorCharactersMax
    let reasonCharactersMax = ManualDecision.reasonCharactersMax

    static func path(_ action: CustomerAction, _ customer: String, in app: BundleID, entitlement: String = "") -> String
    {
        entitlement.isEmpty
            ? address(path, ["action": action.rawValue, "app": app.text, "id": customer])
            : address(path, ["action": action.rawValue, "app": app.text, "id": customer, "entitlement": entitlement])
    }

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
        return .redirect(to: address("/admin/customer", ["app": asked.app.text, "id": customer, "result": result]))
    }

    private func page(of asked: ActionRequest, _ context: AdminContext, confirming: Bool) throws -> Response {
        try context.page(
            "\(asked.action.title): \(asked.customer)", "act",
            ActionPage(asked, formToken: context.session.formToken, confirming: confirming))
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
        let explanation = try await CustomerExplanation(in: tracker.ledger, app: asked.app, customer: asked.customer)
        let polled = Set(explanation.subscriptions.compactMap(\.polledBy))
        let receipts = polled.isEmpty ? Set(explanation.reasons.receipts.map(\.id)) : polled
        var results: Set<ReceiptPage.CheckResult> = []
        for receipt in receipts.sorted(by: { $0.number > $1.number }).prefix(ActionPage.receiptsMax) {
            results.insert(try await check(receipt, by: person))
        }
        return (ReceiptPage.CheckResult.allCases.first(where: results.contains) ?? .nothing).rawValue
    }
}

extension String {
    fileprivate var lowercasedFirst: String { prefix(1).lowercased() + dropFirst() }
}

/// What a person may do to a customer on the pages.
enum CustomerAction: String, CaseIterable {
    case grant, revoke, merge, check

    /// The heading of its form.
    var title: String {
        switch self {
        case .grant: "Grant an entitlement"
        case .revoke: "End a grant"
        case .merge: "Merge into another customer"
        case .check: "Ask Apple now"
        }
    }

    /// What it does, for a person who decides whether to.
    var explanation: String {
        switch self {
        case .grant:
            "The customer has the entitlement from now on, whatever Apple says. Lookups show the basis by_hand, and reports "
                + "of money leave it out. It replaces a running grant of the same entitlement."
        case .revoke:
            "The grant ends now. Lookups about the time before still find it. What Apple says does not change."
        case .merge:
            "Everything that the customer has becomes the other customer's, and a lookup by the old id gives the answer for "
                + "the other. For people who were anonymous first. `perennial customer split` undoes it."
        case .check:
            "Apple is asked about the receipts of this customer's subscriptions, within the rate of the app, about each at "
                + "most once a minute."
        }
    }

    var isDecision: Bool { self != .check }

    /// The sentence after it was done, as the query names it.
    var done: String {
        switch self {
        case .grant: "The entitlement is granted."
        case .revoke: "The grant is ended."
        case .merge: "The customers are merged; this is the one that both names mean now."
        case .check: "Apple was asked; what it said is below."
        }
    }
}

/// The fields of an action's form, checked.
struct ActionRequest {
    let action: CustomerAction
    let app: BundleID
    let customer, entitlement, into: String
    /// The last day of a grant, such as `2026-12-31`; empty for no end.
    let lastDay: String
    let actor, reason: String

    /// Reads the fields. Throws a problem where the app, the customer or the action is missing.
    init(reading field: (String) -> String) throws {
        guard let action = CustomerAction(rawValue: field("action")), !field("app").isEmpty, !field("id").isEmpty else {
            throw Problem(.invalid, "The address names no action, app and customer; begin at the customer's page.")
        }
        self.action = action
        (app, customer) = (BundleID(field("app")), field("id"))
        (entitlement, into, lastDay) = (field("entitlement"), field("into"), field("until"))
        (actor, reason) = (field("actor"), field("reason"))
    }

    /// The end of a grant: the end of its last day in UTC. Throws a problem for what is no day.
    var until: Instant? {
        get throws {
            guard !lastDay.isEmpty else { return nil }
            return try Instant(asked: lastDay + "T00:00:00Z", as: "The last day") + .days(1)
        }
    }

    var decision: ManualDecision { get throws { try ManualDecision(by: actor, because: reason) } }

    /// What will be done, in one sentence for the confirmation. Throws for what cannot be done.
    var sentence: String {
        get throws {
            switch action {
            case .grant:
                let end = lastDay.isEmpty ? "without an end" : "until the end of \(lastDay) (UTC)"
                return "\(customer) gets \(entitlement) \(end)."
            case .revoke: return "The manual grant of \(entitlement) to \(customer) ends now."
            case .merge: return "Everything that \(customer) has becomes \(into)'s, and both ids mean \(into)."
            case .check: return "Apple is asked about the subscriptions of \(customer)."
            }
        }
    }

    /// The fields, for the form and for the confirmation.
    var fields: [HiddenField] {
        [
            ("action", action.rawValue), ("app", app.text), ("id", customer), ("entitlement", entitlement),
            ("into", into), ("until", lastDay), ("actor", actor), ("reason", reason),
        ].map(HiddenField.init).filter { !$0.value.isEmpty }
    }

    /// Throws where a field is missing or wrong, before anything is confirmed.
    func requireComplete() throws {
        if action.isDecision { _ = try decision }
        _ = try until
        switch action {
        case .grant, .revoke: try ManualGrant.requireEntitlement(entitlement)
        case .merge:
            try Upload.requireValidCustomerID(into)
            guard into != customer else { throw Problem(.invalid, "A customer cannot be merged into themselves.") }
        case .check: break
        }
    }
}
