import AppStore
import Foundation
import Ledger
import Subscriptions
import Tracking

/// What a person may ask Apple on the pages.
enum SupportAction: String, CaseIterable {
    case extend, refunds, consumption, token, test

    /// The actions about a customer.
    static let ofCustomers = allCases.filter { $0 != .test }

    /// The heading of its form.
    var title: String {
        switch self {
        case .extend: "Extend a subscription"
        case .refunds: "Look up refunds"
        case .consumption: "Answer a refund request"
        case .token: "Set the account token"
        case .test: "Send a test notification"
        }
    }

    /// What it does, for a person who decides whether to.
    var explanation: String {
        switch self {
        case .extend:
            "Apple moves the renewal of a running subscription by some days, which the customer does not pay for, and tells "
                + "the customer. It does so twice a year at most, and not in a trial."
        case .refunds:
            "Apple names all transactions of the customer in this app that it refunded. Nothing of it is stored."
        case .consumption:
            "Apple has asked what the customer used of a purchase, and decides about a refund with the answer. It waits for "
                + "12 hours. Nothing may be sent without the customer's consent."
        case .token:
            "Apple stores the token with the purchase and its renewals. An owner that is known does not change by it."
        case .test:
            "Apple sends a notification to the address that App Store Connect has for this app."
        }
    }

    /// The result of what was done before, as the query names it.
    static let repeated = "repeated"

    /// Returns the sentence for a result that the query names; nil for another word.
    static func sentence(for result: String) -> String? {
        result == repeated
            ? "The same was done before, so nothing was sent. `perennial support extend --again` extends once more."
            : SupportAction(rawValue: result)?.done
    }

    /// The sentence after it was done.
    var done: String {
        switch self {
        case .extend: "Apple extended the subscription; it is asked about it at once."
        case .refunds: "Apple was asked for refunds."
        case .consumption: "Apple has the answer to the refund request."
        case .token: "Apple has the account token; it is asked about the purchase at once."
        case .test: "Apple sends a test notification."
        }
    }

    /// Whether a confirmation comes before it.
    var isConfirmed: Bool {
        switch self {
        case .extend, .consumption, .token: true
        case .refunds, .test: false
        }
    }
}

/// A transaction that a person can choose.
struct SupportItem: Hashable {
    let environment: StoreEnvironment
    let id: String
    let productID: ProductID

    /// Its name in a form.
    var value: String { "\(environment.rawValue) \(id)" }

    /// Returns what an action can be about: the customer's own subscriptions and purchases.
    static func items(for action: SupportAction, of explanation: CustomerExplanation) -> [SupportItem] {
        let subscriptions = explanation.subscriptions.filter(\.ownership.isCustomer).compactMap { one in
            let newest = one.state.facts.periods.last
            return newest.map {
                (one.environment, one.state.facts.originalTransactionID.text, $0.transactionIDs, $0.productID)
            }
        }
        let purchases = explanation.purchases.filter(\.ownership.isCustomer)
        let bought = purchases.map { one in
            let key = one.state.facts.key
            return action == .consumption
                ? SupportItem(
                    environment: one.environment, id: one.state.transactionID.text, productID: key.productID)
                : SupportItem(
                    environment: one.environment, id: key.originalTransactionID.text, productID: key.productID)
        }
        switch action {
        case .extend, .refunds, .token:
            let all = subscriptions.map { SupportItem(environment: $0.0, id: $0.1, productID: $0.3) }
            return action == .extend ? all : all + bought
        case .consumption:
            return bought
                + subscriptions.flatMap { one in
                    one.2.map(\.text).sorted().map { SupportItem(environment: one.0, id: $0, productID: one.3) }
                }
        case .test: return []
        }
    }
}

/// The fields of a support form.
struct SupportWish {
    let action: SupportAction
    let app: BundleID
    /// The customer; empty for a test notification.
    let customer: String
    private let field: (String) -> String

    /// Reads the fields. Throws a problem where the app, the customer or the action is missing.
    init(reading field: @escaping (String) -> String) throws {
        guard let action = SupportAction(rawValue: field("action")), !field("app").isEmpty,
            action == .test || !field("id").isEmpty
        else {
            throw Problem(.invalid, "The address names no action, app and customer; begin at the customer's page.")
        }
        self.action = action
        (app, customer) = (BundleID(field("app")), action == .test ? "" : field("id"))
        self.field = field
    }

    /// The transaction that was chosen. Throws a problem for one that is not the customer's.
    func item(among items: [SupportItem]) throws -> SupportItem {
        guard let item = items.first(where: { $0.value == field("item") }) else {
            throw Problem(.invalid, "Choose one of the customer's transactions.")
        }
        return item
    }

    /// Where a test notification is sent to.
    var environment: StoreEnvironment { field("item") == StoreEnvironment.sandbox.rawValue ? .sandbox : .production }

    /// The test notification that was sent before; nil for none.
    var token: String? { field("token").isEmpty ? nil : field("token") }

    /// What is to change about a transaction; nil for an action that changes nothing. Throws a problem for a field that
    /// Apple would not take.
    func change(of item: SupportItem) throws -> SupportChange? {
        switch action {
        case .extend:
            guard let days = Int(field("days")), let reason = RenewalExtension.Reason(rawValue: field("why")),
                let how = RenewalExtension(days: days, reason: reason)
            else { throw Problem(.invalid, "An extension has 1 to 90 days and a reason.") }
            return .extend(originalTransactionID: item.id, how)
        case .consumption: return .consumption(transactionID: item.id, try report)
        case .token:
            guard let token = UUID(uuidString: field("token")) else {
                throw Problem(.invalid, "An account token is a UUID.")
            }
            return .accountToken(originalTransactionID: item.id, token: token.uuidString.lowercased())
        case .refunds, .test: return nil
        }
    }

    private var report: ConsumptionReport {
        get throws {
            guard field("consented") == "yes" else {
                throw Problem(
                    .invalid,
                    "Apple takes this only with the customer's consent; go back and tick the box if the customer consented."
                )
            }
            let percent = field("percent").isEmpty ? nil : Int(field("percent"))
            guard let delivery = ConsumptionReport.Delivery(rawValue: field("delivery")),
                percent != nil || field("percent").isEmpty,
                let report = ConsumptionReport(
                    delivery: delivery, sampled: field("sampled") == "yes", consumedPercent: percent,
                    preference: ConsumptionReport.Preference(rawValue: field("prefer")))
            else {
                throw Problem(.invalid, "What was used is 0 to 100 percent, and 0 of what was not delivered.")
            }
            return report
        }
    }

    /// What will be done, in one sentence for the confirmation.
    func sentence(about item: SupportItem) -> String {
        switch action {
        case .extend: "Apple extends \(item.productID) (\(item.value)) of \(customer) by \(field("days")) days."
        case .consumption:
            "Apple gets what \(customer) used of \(item.productID) (\(item.value)). The customer consented."
        case .token: "Apple stores the account token \(field("token")) with \(item.productID) (\(item.value))."
        case .refunds: "Apple is asked for the refunds of \(customer)."
        case .test: "Apple sends a test notification of \(app)."
        }
    }

    /// The fields, for the confirmation.
    var fields: [(name: String, value: String)] {
        [
            "action", "app", "id", "item", "days", "why", "delivery", "sampled", "percent", "prefer", "consented",
            "token",
        ].map { ($0, field($0)) }.filter { !$0.value.isEmpty }
    }
}
