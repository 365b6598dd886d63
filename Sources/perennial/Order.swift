import ArgumentParser
import JSON
import Subscriptions
import Tracking

extension OrderState: ExpressibleByArgument {}

struct OrderCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "order", "Shows what customers are about to buy, or bought, and cancels it.",
        examples: "perennial order list --app com.example.app --customer c1",
        subcommands: [OrderListCommand.self, OrderShowCommand.self, OrderCancelCommand.self])
}

struct OrderListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "list", "Lists a customer's orders, the oldest first.",
        examples: "perennial order list --app com.example.app --customer c1 --state paid")

    @Option(help: "Only orders in this state.")
    var state: OrderState?

    @Option(1...Int.max, help: ArgumentHelp("The most orders.", valueName: "N"))
    var limit = 1_000

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: CustomerFlags

    func run() async throws {
        let orders = try await flags.ledger {
            try await $0.orders.read(of: flags.customer, in: flags.app, state: state, limit: limit)
        }
        form.show(Listing(orders))
    }
}

struct OrderShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "show", "Shows an order, and where it is.",
        notes: "perennial.order_log has every change of it.",
        examples: "perennial order show --app com.example.app 6f1f6a0e-5a51-4a43-9d35-1d3b7f4a1b11")

    @Argument(help: ArgumentHelp("The order's id.", valueName: "ID"))
    var id: String

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: AppFlags

    func run() async throws {
        guard let order = try await flags.ledger({ try await $0.orders.read(id, of: flags.app) }) else {
            throw Failure("\(flags.app) has no order \(id).")
        }
        form.show(Listing([order]))
    }
}

struct OrderCancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "cancel", "Cancels an order that is not paid.",
        notes: "A payment that comes after all still pays it, by its token or a receipt that was sent for it.",
        examples: "perennial order cancel --app com.example.app 6f1f6a0e-5a51-4a43-9d35-1d3b7f4a1b11")

    @Argument(help: ArgumentHelp("The order's id.", valueName: "ID"))
    var id: String

    @OptionGroup var flags: AppFlags

    func run() async throws {
        let order = try await flags.ledger { try await $0.orders.cancel(id, of: flags.app) }
        printLine("Order \(order.id) is \(order.state.rawValue).")
    }
}

extension Listing {
    fileprivate init(_ orders: [Order]) {
        self = orders.listing([
            ("order_id", { .string($0.id) }), ("customer", { .string($0.customer) }),
            ("product_id", { .string($0.productID.text) }), ("quantity", { .integer(Int64($0.quantity)) }),
            ("environment", { .optional($0.environment?.rawValue) }), ("state", { .string($0.state.rawValue) }),
            ("cause", { .string($0.cause) }), ("created_at", { .string($0.createdAt.iso8601) }),
            ("expires_at", { .string($0.expiresAt.iso8601) }), ("paid_at", { .optional($0.paidAt) }),
            ("transaction_id", { .optional($0.transactionID) }),
            ("delivery_ids", { .string($0.deliveryIDs.joined(separator: " ")) }),
        ])
    }
}
