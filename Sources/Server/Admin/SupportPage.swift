import AppStore
import Foundation
import Hummingbird
import Subscriptions
import Tracking

/// `/admin/support`: the form of a support call, its confirmation, and what Apple answers.
struct SupportPage {
    static let path = "/admin/support"

    let explanation, formToken, back: String
    /// What will be done; nil while the form is filled in.
    let sentence: String?
    let hidden: [HiddenField]
    let button, itemTitle: String
    let items: [Choice]
    let hasItems, needsDays, needsReport, needsToken: Bool
    /// What Apple answered; nil before it was asked.
    let result: AdminTable?
    let reasons = Choice.list(
        RenewalExtension.Reason.allCases.map(\.rawValue), chosen: RenewalExtension.Reason.outage.rawValue)
    let deliveries = Choice.list(
        ConsumptionReport.Delivery.allCases.map { ($0.rawValue, $0.rawValue.replacing("_", with: " ")) }, chosen: nil)
    let preferences = Choice.list(ConsumptionReport.Preference.allCases.map(\.rawValue), none: "nothing")

    static func path(_ action: SupportAction, _ customer: String, in app: BundleID) -> String {
        address(path, ["action": action.rawValue, "app": app.text, "id": customer])
    }

    init(
        _ wish: SupportWish, _ items: [SupportItem], formToken: String, confirming item: SupportItem? = nil,
        result: AdminTable? = nil, following token: String? = nil
    ) {
        let action = wish.action
        explanation = action.explanation
        self.formToken = formToken
        self.result = result
        back = action == .test ? "/admin/incidents" : CustomerPage.path(of: wish.customer, in: wish.app)
        sentence = item.map { wish.sentence(about: $0) }
        let isFixed = item != nil || token != nil
        hidden =
            wish.fields.filter { isFixed || ["action", "app", "id"].contains($0.name) }
            + (token.map { [HiddenField(name: "token", value: $0)] } ?? [])
        button =
            item != nil
            ? "Yes: ask Apple for it"
            : token != nil ? "Ask what became of it" : action.isConfirmed ? "Continue" : "Ask Apple"
        itemTitle = action == .test ? "Environment" : "Transaction"
        self.items =
            action == .test
            ? Choice.list(StoreEnvironment.allCases.map(\.rawValue))
            : Choice.list(items.map { ($0.value, "\($0.productID): \($0.value)") }, chosen: nil)
        hasItems = !isFixed
        needsDays = !isFixed && action == .extend
        needsReport = !isFixed && action == .consumption
        needsToken = !isFixed && action == .token
    }
}

extension AdminSite {
    /// `GET /admin/support`: the form.
    func supportForm(_ request: Request, _ context: AdminContext) async throws -> Response {
        let wish = try SupportWish { request.query($0[...]) ?? "" }
        let items = try await supportItems(of: wish)
        return try page(of: wish, SupportPage(wish, items, formToken: context.session.formToken), context)
    }

    /// `POST /admin/support`: the confirmation of a form, and once it is confirmed, the call.
    func support(_: Request, _ context: AdminContext) async throws -> Response {
        guard let form = context.form else { throw Problem(.invalid, "The form is empty.") }
        let wish = try SupportWish { form[$0] }
        let items = try await supportItems(of: wish)
        let person = tracker.acting(as: .key(context.session.keyID))
        let app = try await tracker.ledger.apps.app(wish.app)
        guard wish.action != .test else { return try await test(wish, app, by: person, context) }
        let item = try wish.item(among: items)
        guard let change = try wish.change(of: item) else {
            let contents = try await person.support(
                .refunds(id: item.id), about: app, in: item.environment, for: wish.customer)
            let content = SupportPage(
                wish, items, formToken: context.session.formToken, result: AdminTable(refunds: contents))
            return try page(of: wish, content, context)
        }
        guard form["confirmed"] == "yes" else {
            let content = SupportPage(wish, items, formToken: context.session.formToken, confirming: item)
            return try page(of: wish, content, context)
        }
        let made = try await person.support(change, about: app, in: item.environment, for: wish.customer)
        let result = made.isRepeated ? SupportAction.repeated : wish.action.rawValue
        let query: KeyValuePairs = ["app": app.bundleID.text, "id": wish.customer, "result": result]
        return .redirect(to: address("/admin/customer", query))
    }

    /// Sends a test notification, or says what became of one.
    private func test(
        _ wish: SupportWish, _ app: App, by person: Tracker, _ context: AdminContext
    ) async throws -> Response {
        let question = wish.token.map { SupportQuestion.testStatus(token: $0) } ?? .testNotification
        let contents = try await person.support(question, about: app, in: wish.environment)
        var (token, received): (String?, Instant?) = (wish.token, nil)
        if case .test(let sent) = contents { token = sent }
        if case .testStatus(let test) = contents {
            received = try await tracker.ledger.support.received(test.uuid, for: app)
        }
        let content = SupportPage(
            wish, [], formToken: context.session.formToken, result: AdminTable(test: contents, received: received),
            following: token)
        return try page(of: wish, content, context)
    }

    private func page(of wish: SupportWish, _ content: SupportPage, _ context: AdminContext) throws -> Response {
        let subject = wish.action == .test ? wish.app.text : wish.customer
        return try context.page("\(wish.action.title): \(subject)", "support", content)
    }

    /// Returns what a wish can be about. Throws a problem for an unknown app or customer, or where there is nothing.
    private func supportItems(of wish: SupportWish) async throws -> [SupportItem] {
        guard wish.action != .test else {
            _ = try await tracker.ledger.apps.app(wish.app)
            return []
        }
        let explanation = try await CustomerExplanation(in: tracker.ledger, app: wish.app, customer: wish.customer)
        guard explanation.reasons.isKnown else {
            throw Problem(.notFound, "No customer of the app \(wish.app) has the id \(wish.customer).")
        }
        let items = SupportItem.items(for: wish.action, of: explanation)
        guard !items.isEmpty else {
            throw Problem(.notFound, "\(wish.customer) has nothing that Apple could be asked about here.")
        }
        return items
    }
}

extension AdminTable {
    fileprivate init(refunds contents: SupportContents) {
        var found: [SignedTransaction] = []
        if case .transactions(let named, goesOn: _) = contents { found = named }
        self.init(
            "Refunds, as Apple answered just now", of: found, empty: "Apple refunded nothing.",
            [
                ("Transaction", { .text($0.row.transactionID.text) }), ("Product", { .text($0.row.productID.text) }),
                ("Purchased", { .instant($0.row.purchasedAt) }), ("Refunded", { .instant($0.row.cancelledAt) }),
                ("Reason", { .text($0.revocationReason) }),
            ])
    }

    fileprivate init(test contents: SupportContents, received: Instant?) {
        var attempts: [TestNotification.Attempt] = []
        if case .testStatus(let test) = contents { attempts = test.attempts }
        self.init(
            "The test notification", ["Apple tried", "Result", "Received here"],
            empty: "Apple takes a moment to send it. Ask again.",
            attempts.map {
                [.instant(Instant(milliseconds: $0.at)), .text($0.result), .instant(received, orElse: "not received")]
            })
    }
}

/// What a person may ask Apple on the pages.
enum SupportAction: String, CaseIterable {
    case extend, refunds, consumption, token, test

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

    var isConfirmed: Bool { [.extend, .consumption, .token].contains(self) }
}

/// A transaction that a person can choose.
struct SupportItem: Hashable {
    let environment: StoreEnvironment
    let id: String
    let productID: ProductID

    var value: String { "\(environment.rawValue) \(id)" }

    /// Returns what an action can be about: the customer's own subscriptions and purchases.
    static func items(for action: SupportAction, of explanation: CustomerExplanation) -> [SupportItem] {
        // A consumption report is about one transaction, everything else about the first.
        let isUse = action == .consumption
        let subscriptions = explanation.subscriptions.filter(\.ownership.isCustomer).flatMap { one -> [SupportItem] in
            let facts = one.state.facts
            guard let newest = facts.periods.last else { return [] }
            let ids = isUse ? newest.transactionIDs.map(\.text).sorted() : [facts.originalTransactionID.text]
            return ids.map { SupportItem(environment: one.environment, id: $0, productID: newest.productID) }
        }
        let purchases = explanation.purchases.filter(\.ownership.isCustomer).map { one in
            let key = one.state.facts.key
            let id = isUse ? one.state.transactionID.text : key.originalTransactionID.text
            return SupportItem(environment: one.environment, id: id, productID: key.productID)
        }
        return switch action {
        case .extend: subscriptions
        case .refunds, .token: subscriptions + purchases
        case .consumption: purchases + subscriptions
        case .test: []
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

    var token: String? { field("token").isEmpty ? nil : field("token") }

    /// What is to change about a transaction, if anything. Throws a problem for a field that Apple would not take.
    func change(of item: SupportItem) throws -> SupportChange? {
        switch action {
        case .extend:
            guard let days = Int.ofDigits(field("days")), let reason = RenewalExtension.Reason(rawValue: field("why")),
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
            let percent = field("percent").isEmpty ? nil : Int.ofDigits(field("percent"))
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

    var fields: [HiddenField] {
        [
            "action", "app", "id", "item", "days", "why", "delivery", "sampled", "percent", "prefer", "consented",
            "token",
        ].map { HiddenField(name: $0, value: field($0)) }.filter { !$0.value.isEmpty }
    }
}
