import AppStore
import Hummingbird
import Ledger
import Subscriptions
import Tracking

/// `/admin/support`: the form of a support call, its confirmation, and what Apple answers.
struct SupportPage {
    static let path = "/admin/support"

    let explanation: String
    let formToken: String
    let back: String
    /// What will be done; nil while the form is filled in.
    let sentence: String?
    let hidden: [ActionPage.Hidden]
    let button: String
    let itemTitle: String
    let items: [OverviewPage.Choice]
    let hasItems: Bool
    let needsDays: Bool
    let needsReport: Bool
    let needsToken: Bool
    /// What Apple answered; nil before it was asked.
    let result: AdminTable?
    let reasons = Self.choices(
        RenewalExtension.Reason.allCases.map { ($0.rawValue, $0.rawValue) },
        chosen: RenewalExtension.Reason.outage.rawValue)
    let deliveries = Self.choices(
        ConsumptionReport.Delivery.allCases.map { ($0.rawValue, $0.rawValue.replacing("_", with: " ")) })
    let preferences = Self.choices(
        [("", "nothing")] + ConsumptionReport.Preference.allCases.map { ($0.rawValue, $0.rawValue) })

    /// Returns the address of an action's form.
    static func path(_ action: SupportAction, _ customer: String, in app: BundleID) -> String {
        address(path, ["action": action.rawValue, "app": app.text, "id": customer])
    }

    /// Creates the form, the confirmation of what it sent, or the answer to it.
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
        let fields = wish.fields.filter { isFixed || ["action", "app", "id"].contains($0.name) }
        hidden = (fields + [("token", token)].compactMap { name, value in value.map { (name, $0) } })
            .map { ActionPage.Hidden(name: $0.name, value: $0.value) }
        button =
            item != nil
            ? "Yes: ask Apple for it"
            : token != nil ? "Ask what became of it" : action.isConfirmed ? "Continue" : "Ask Apple"
        itemTitle = action == .test ? "Environment" : "Transaction"
        self.items =
            action == .test
            ? Self.choices(StoreEnvironment.allCases.map { ($0.rawValue, $0.rawValue) })
            : Self.choices(items.map { ($0.value, "\($0.productID): \($0.value)") })
        hasItems = !isFixed
        needsDays = !isFixed && action == .extend
        needsReport = !isFixed && action == .consumption
        needsToken = !isFixed && action == .token
    }

    private static func choices(_ values: [(String, String)], chosen: String? = nil) -> [OverviewPage.Choice] {
        values.map { OverviewPage.Choice(value: $0.0, title: $0.1, isChosen: $0.0 == chosen) }
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
        return Response.redirect(to: address("/admin/customer", query))
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

    private func page(
        of wish: SupportWish, _ content: SupportPage, _ context: AdminContext
    ) throws -> Response {
        try AdminPage(
            title: "\(wish.action.title): \(wish.action == .test ? wish.app.text : wish.customer)", template: "support",
            content: content, session: context.session
        ).response()
    }

    /// Returns what a wish can be about. Throws a problem for an unknown app or customer, or where there is nothing.
    private func supportItems(of wish: SupportWish) async throws -> [SupportItem] {
        guard wish.action != .test else {
            _ = try await tracker.ledger.apps.app(wish.app)
            return []
        }
        let explanation = try await CustomerExplanation(
            in: tracker.ledger, app: wish.app, customer: wish.customer)
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
    /// The refunds that Apple names.
    fileprivate init(refunds contents: SupportContents) {
        let found: [SignedTransaction] =
            switch contents {
            case .transactions(let found, goesOn: _): found
            case .test, .testStatus, .extended, .extensionStatus, .accepted: []
            }
        self.init(
            "Refunds, as Apple answered just now", ["Transaction", "Product", "Purchased", "Refunded", "Reason"],
            empty: "Apple refunded nothing.",
            found.map { one in
                [
                    .text(one.transactionID), .text(one.productID), .instant(Instant(milliseconds: one.purchasedAt)),
                    .instant(one.revokedAt.map { Instant(milliseconds: $0) }), .text(one.revocationReason),
                ]
            })
    }

    /// What became of a test notification.
    fileprivate init(test contents: SupportContents, received: Instant?) {
        let attempts: [TestNotification.Attempt] =
            switch contents {
            case .testStatus(let test): test.attempts
            case .test, .transactions, .extended, .extensionStatus, .accepted: []
            }
        self.init(
            "The test notification", ["Apple tried", "Result", "Received here"],
            empty: "Apple takes a moment to send it. Ask again.",
            attempts.map { one in
                [
                    .instant(Instant(milliseconds: one.at)), .text(one.result),
                    .instant(received, orElse: "not received"),
                ]
            })
    }
}
