import Hummingbird
import Ledger
import Subscriptions
import Tracking

/// `GET /admin/customers`: the search for a customer.
struct CustomersPage {
    /// The most customers that are shown.
    static let customersMax = 50
    /// The longest search text, in characters.
    static let textMax = 255

    let text: String
    let found: AdminTable?
    let isCut: Bool
}

extension AdminSite {
    /// `GET /admin/customers`
    func customers(_ request: Request, _ context: AdminContext) async throws -> Response {
        let text = String((request.query("q") ?? "").prefix(CustomersPage.textMax))
            .filter { $0 != "\0" }
        let found =
            text.isEmpty
            ? nil : try await tracker.ledger.admin.search(text, limit: CustomersPage.customersMax)
        let table = found.map { found in
            AdminTable(
                "Customers found", ["Customer", "App", "Since"], empty: "No customer was found.",
                found.map { one in
                    [
                        .text(one.customer, link: CustomerPage.path(of: one.customer, in: one.bundleID)),
                        .text(one.bundleID.text), .instant(one.createdAt),
                    ]
                })
        }
        return try AdminPage(
            title: "Customers", template: "customers",
            content: CustomersPage(
                text: text, found: table, isCut: (found?.count ?? 0) >= CustomersPage.customersMax),
            session: context.session
        ).response()
    }
}
