import Ledger
import Subscriptions

/// The tables of what a customer ordered, what was delivered, and the balances of credits.
struct PurchaseTables {
    /// The most orders, changes of each order, and deliveries.
    static let rowsMax = 100

    let orders: AdminTable
    let deliveries: AdminTable
    let balances: AdminTable
    let hasMoreOrders: Bool
    let hasMoreDeliveries: Bool
    /// The most rows, for the sentence below a table that was cut.
    let rowsMax = Self.rowsMax

    init(_ history: PurchaseHistory) {
        orders = AdminTable(
            "Orders, newest first", ["Order", "State", "Log", "Product", "Quantity", "Placed", "Paid", "Transaction"],
            history.orders.map(Self.row(of:)))
        deliveries = AdminTable(
            "Deliveries, newest first",
            ["Delivery", "State", "What", "Reason", "Product", "Since", "Settled", "By", "Why skipped"],
            history.deliveries.map(Self.row(of:)))
        balances = AdminTable(
            "Credits: what acknowledged deliveries gave, less what they took back", ["Credit", "Environment", "Units"],
            history.balances.map { one in
                [.text(one.credit), .text(one.environment.rawValue), .text(grouped(one.units))]
            })
        hasMoreOrders = history.hasMoreOrders
        hasMoreDeliveries = history.hasMoreDeliveries
    }

    private static func row(of logged: PurchaseHistory.LoggedOrder) -> [AdminTable.Cell] {
        let order = logged.order
        return [
            .text(order.id), .text("\(order.state.rawValue) (\(order.cause))"), .log(of: logged.changes),
            .text(order.productID.text), .number(order.quantity), .instant(order.createdAt),
            .instant(order.paidAt, orElse: "not paid"), .sandbox(order.transactionID, in: order.environment),
        ]
    }

    private static func row(of delivery: Delivery) -> [AdminTable.Cell] {
        [
            .text(String(delivery.id), link: DeliveryPage.path(of: delivery.id)), .text(delivery.state.rawValue),
            .sandbox(
                [delivery.action, delivery.unitsText].compactMap(\.self).joined(separator: " "),
                in: delivery.environment),
            .text(delivery.reason.replacing("_", with: " ")), .text(delivery.productID.text),
            .instant(delivery.createdAt), .instant(delivery.settledAt, orElse: "not yet"), .text(delivery.settledBy),
            .prose(delivery.skipReason),
        ]
    }
}

extension AdminTable.Cell {
    /// Returns a text, marked where it is about the sandbox.
    fileprivate static func sandbox(_ text: String?, in environment: StoreEnvironment?) -> AdminTable.Cell {
        .text(environment == .sandbox ? text.map { "\($0) (Sandbox)" } : text)
    }

    /// Returns the log of an order, which a reader opens.
    fileprivate static func log(of changes: [PurchaseHistory.Change]) -> AdminTable.Cell {
        let lines = changes.map { change in
            AdminTable.Line(
                change.code.map { "\(change.state.rawValue) (\(change.cause), code \($0))" }
                    ?? "\(change.state.rawValue) (\(change.cause))", at: change.at)
        }
        let isCut = lines.count >= PurchaseTables.rowsMax
        let summary = isCut ? "the newest \(lines.count)" : lines.count == 1 ? "1 change" : "\(lines.count) changes"
        return AdminTable.Cell(text: summary, list: AdminTable.List(summary: summary, lines: lines))
    }
}

extension Delivery {
    /// The units of a credit that it gives or takes back; nil where it is no consumable.
    var unitsText: String? {
        guard let units, let credit else { return nil }
        return "\(grouped(units)) \(credit)"
    }

    /// What the turn does, in plain words.
    var action: String {
        (turn.isMultiple(of: 2) ? "takes back" : "gives") + (turn > 2 ? " again" : "")
    }
}
