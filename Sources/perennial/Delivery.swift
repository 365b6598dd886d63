import ArgumentParser
import JSON
import Subscriptions
import Tracking

extension Delivery.State: ExpressibleByArgument {}

struct DeliveryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "delivery", "Shows what purchases give, and says what was carried out.",
        examples: "perennial delivery list --app com.example.app --state due",
        subcommands: [DeliveryListCommand.self, DeliveryAcknowledgeCommand.self, DeliverySkipCommand.self])
}

struct DeliveryListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "list", "Lists deliveries in the order of the queue.",
        notes: "Production alone, unless --sandbox is given.",
        examples: "perennial delivery list --app com.example.app --state due --customer c1")

    @Option(help: "Only deliveries in this state: due, acknowledged or skipped.")
    var state: Delivery.State?

    @Option(help: ArgumentHelp("Only this customer's, by your own id.", valueName: "C"))
    var customer: String?

    @Flag(help: "Deliveries of the sandbox instead of production.")
    var sandbox = false

    @Option(0...Int64.max, help: ArgumentHelp("Only deliveries after this position.", valueName: "N"))
    var after: Int64 = 0

    @Option(1...Int.max, help: ArgumentHelp("The most deliveries.", valueName: "N"))
    var limit = 1_000

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: AppFlags

    func run() async throws {
        let page = try await flags.ledger {
            try await $0.deliveries.read(
                of: flags.app, state: state, customer: customer, environment: sandbox ? .sandbox : .production,
                after: after, limit: limit)
        }
        form.show(Listing(page.deliveries))
    }
}

struct DeliveryAcknowledgeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "ack", "Says that deliveries were carried out.",
        notes: "A repetition changes nothing. The exit status is 1 if one of them is unknown or was skipped.",
        examples: "perennial delivery ack --app com.example.app 17 18")

    @Argument(help: ArgumentHelp("The deliveries' ids.", valueName: "ID"))
    var ids: [Int64]

    @OptionGroup var flags: AppFlags

    func run() async throws {
        let results = try await flags.ledger { try await $0.deliveries.acknowledge(ids, of: flags.app) }
        for result in results {
            let first = result.isFirst ? "" : " already"
            printLine("\(result.id): \(result.state.map { "\($0.rawValue)\(first)" } ?? "unknown")")
        }
        let left = results.count { $0.state != .acknowledged }
        guard left == 0 else { throw Failure("\(left.of("delivery is", "deliveries are")) not acknowledged.") }
    }
}

struct DeliverySkipCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "skip", "Says that nothing is to be done for a delivery.",
        notes: "Nothing follows a skipped delivery: a refund of it takes nothing back.",
        examples: """
            perennial delivery skip --app com.example.app 17 --reason "given by hand on 20 November"
            """)

    @Argument(help: ArgumentHelp("The delivery's id.", valueName: "ID"))
    var id: Int64

    @Option(help: ArgumentHelp("Why, in words for the next person who asks.", valueName: "R"))
    var reason: String

    @OptionGroup var flags: AppFlags

    func run() async throws {
        let result = try await flags.ledger { try await $0.deliveries.skip(id, of: flags.app, because: reason) }
        printLine(result.isFirst ? "Skipped delivery \(id)." : "Delivery \(id) was skipped before.")
    }
}

extension Listing {
    init(_ deliveries: [Delivery]) {
        self = deliveries.listing([
            ("delivery_id", { .string("\($0.id)") }),
            ("position", { one in one.position.map { .integer($0) } ?? .null }), ("customer", { .string($0.customer) }),
            ("environment", { .string($0.environment.rawValue) }), ("product_id", { .string($0.productID.text) }),
            ("kind", { .string($0.kind.rawValue) }), ("credit", { .optional($0.credit) }),
            ("units", { one in one.units.map { .integer($0) } ?? .null }), ("turn", { .integer(Int64($0.turn)) }),
            ("reason", { .string($0.reason) }), ("order_id", { .optional($0.orderID) }),
            ("transaction_id", { .string($0.transactionID.text) }),
            ("original_transaction_id", { .string($0.originalTransactionID.text) }),
            ("state", { .string($0.state.rawValue) }), ("created_at", { .string($0.createdAt.iso8601) }),
            ("settled_at", { .optional($0.settledAt) }), ("settled_by", { .optional($0.settledBy) }),
            ("skip_reason", { .optional($0.skipReason) }),
        ])
    }
}
