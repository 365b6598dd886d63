import Ledger
import Subscriptions
import Tracking

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

    /// Whether it is a decision, with a person and a reason.
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
    let customer: String
    let entitlement: String
    let into: String
    /// The last day of a grant, such as `2026-12-31`; empty for no end.
    let lastDay: String
    let actor: String
    let reason: String

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

    /// The decision. Throws `invalid` without a person or a reason.
    var decision: ManualDecision {
        get throws { try ManualDecision(by: actor, because: reason) }
    }

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
    var fields: [(name: String, value: String)] {
        [
            ("action", action.rawValue), ("app", app.text), ("id", customer), ("entitlement", entitlement),
            ("into", into), ("until", lastDay), ("actor", actor), ("reason", reason),
        ].filter { !$0.value.isEmpty }
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
