import Hummingbird
import Subscriptions
import Tracking

/// `GET /admin/customers`: the search for a customer, and the list of an app's customers with filters.
struct CustomersPage {
    static let customersMax = 50
    /// The longest search text, in characters.
    static let textMax = 255

    let text: String
    let found: AdminTable?
    let isCut: Bool
    /// The list; nil while there is no app.
    let listing: CustomerListView?
}

struct CustomerListView {
    /// The amounts to choose from, in units of a currency.
    static let amounts: [Int64] = [1, 10, 50, 100, 500]

    let apps, states, products, spendings: [Choice]
    let customers: AdminTable
    let next: String?
    let nextTitle: String

    init(
        _ page: CustomerListPage, of bundleID: BundleID, filter: CustomerFilter, apps: [App],
        products: [CatalogProduct]
    ) {
        self.apps = Choice.list(apps.map { ($0.bundleID.text, $0.name) }, chosen: bundleID.text)
        states = Choice.list(State.allCases.map(\.rawValue), chosen: filter.state?.rawValue, none: "any")
        self.products = Choice.list(products.map(\.id.text), chosen: filter.product, none: "any")
        let spent = filter.spentMilliunits.map { String($0 / 1_000) }
        spendings = Choice.list(Self.amounts.map { ("\($0)", "at least \($0)") }, chosen: spent, none: "any")
        customers = AdminTable(
            "Customers", ["Customer", "Subscriptions", "Products", "Expires", "Spent", "Known since"],
            empty: page.next == nil ? "No customer fits." : "None of these customers fits; look further.",
            isStacked: true, page.customers.map { Self.row(of: $0, in: bundleID) })
        next = page.next.map { after in
            address(
                "/admin/customers",
                [
                    "app": bundleID.text, "state": filter.state?.rawValue ?? "", "product": filter.product ?? "",
                    "spent": spent ?? "", "after": after,
                ])
        }
        nextTitle = page.customers.isEmpty ? "Look further" : "More customers"
    }

    private static func row(of one: CustomerSummary, in bundleID: BundleID) -> [AdminTable.Cell] {
        let more = one.states.count > 1 ? " and \(one.states.count - 1) more" : ""
        let spent = one.spent.map { "\(amountText($0.milliunits)) \($0.currency)" }.joined(separator: ", ")
        return [
            .text(one.customer, link: CustomerPage.path(of: one.customer, in: bundleID)),
            one.states.first.map { .state($0, one.reasons.first.flatMap { $0.isEmpty ? nil : $0 }, more: more) }
                ?? .text(nil),
            .text(one.products.first), .instant(one.expiresAt, toMinute: true),
            AdminTable.Cell(text: spent.isEmpty ? "–" : spent, isNumber: true),
            .instant(one.createdAt, toMinute: true),
        ]
    }
}

extension AdminSite {
    func customers(_ request: Request, _ context: AdminContext) async throws -> Response {
        let asked = request.query("q")
        let text = String((asked ?? "").prefix(CustomersPage.textMax))
        let found =
            asked == nil
            ? nil : text.isEmpty ? [] : try await tracker.ledger.admin.search(text, limit: CustomersPage.customersMax)
        let table = found.map { found in
            AdminTable(
                "Customers found", of: found, empty: "No customer was found.",
                [
                    ("Customer", { .text($0.customer, link: CustomerPage.path(of: $0.customer, in: $0.bundleID)) }),
                    ("App", { .text($0.bundleID.text) }), ("Known since", { .instant($0.createdAt) }),
                ])
        }
        let content = CustomersPage(
            text: text, found: table, isCut: (found?.count ?? 0) >= CustomersPage.customersMax,
            listing: found == nil ? try await customerList(request) : nil)
        return try context.page("Customers", "customers", content)
    }

    /// Returns the list that the query asks for, of the first app where it names none.
    private func customerList(_ request: Request) async throws -> CustomerListView? {
        let ledger = tracker.ledger
        let apps = try await ledger.apps.all()
        guard let app = try request.app(of: apps) ?? apps.first else { return nil }
        let spent = request.query("spent").flatMap(Int64.ofDigits).map { min($0, 1_000_000_000) * 1_000 }
        let filter = CustomerFilter(
            state: request.query("state").flatMap { State(rawValue: $0) },
            product: request.query("product"), spentMilliunits: spent)
        let after = request.query("after") ?? ""
        return CustomerListView(
            try await ledger.admin.customers(
                of: app.bundleID, filter, after: after, limit: CustomersPage.customersMax),
            of: app.bundleID, filter: filter, apps: apps, products: try await ledger.apps.catalog(of: app.bundleID))
    }
}
