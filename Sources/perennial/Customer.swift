import ArgumentParser
import JSON
import Subscriptions
import Tracking

struct CustomerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "customer", "Shows, merges, splits and erases customers, and assigns purchases to them.",
        examples: """
            perennial customer show --app com.example.app --customer c1
            perennial customer merge --app com.example.app --from anonymous-7 --into c1 --reason "logged in"
            """,
        subcommands: [
            CustomerShowCommand.self, CustomerAssignCommand.self, CustomerMergeCommand.self, CustomerSplitCommand.self,
            CustomerEraseCommand.self,
        ])
}

struct CustomerAssignCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "assign", "Gives a subscription or one-time purchase to a customer, as to undo a transfer.",
        notes: """
            The assignment does not count among the transfers that the app's policy allows. An upload can transfer the \
            purchase again.
            """,
        examples: """
            perennial customer assign --app com.example.app --to c1 --original-transaction-id 1000000 \\
              --reason "taken over on a shared device"
            """)

    @Option(help: ArgumentHelp("Your own id of the new owner.", valueName: "C"))
    var to: String

    @Option(help: ArgumentHelp("Apple's id of the subscription or purchase.", valueName: "ID"))
    var originalTransactionId: String

    @OptionGroup var decision: DecisionFlags
    @OptionGroup var flags: AppFlags

    func run() async throws {
        let decided = try decision.decision
        let things = try await flags.ledger { ledger in
            try await ledger.customers.assign(
                OriginalTransactionID(originalTransactionId), to: to, of: flags.app, deciding: decided)
        }
        printLine(things == 0 ? "\(to) owned it already." : "\(to) owns \(originalTransactionId).")
    }
}

struct CustomerMergeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "merge", "Merges a customer into another, with all purchases, uploads and manual grants.",
        notes: """
            Use it when an anonymous customer turns out to be a known one. From then on the old name stands for the \
            new one in lookups and uploads. Lookups of the time before answer as they did. A second run changes \
            nothing.
            """,
        examples: """
            perennial customer merge --app com.example.app --from anonymous-7 --into c1 --reason "logged in"
            """)

    @Option(help: ArgumentHelp("The customer to merge: the old name.", valueName: "C"))
    var from: String

    @Option(help: ArgumentHelp("The customer who gets everything.", valueName: "C"))
    var into: String

    @OptionGroup var decision: DecisionFlags
    @OptionGroup var flags: AppFlags

    func run() async throws {
        let decided = try decision.decision
        let merge = try await flags.ledger { ledger in
            try await ledger.customers.merge(from, into: into, of: flags.app, deciding: decided)
        }
        let things = merge.things.of("subscription or purchase", "subscriptions and purchases")
        printLine(
            merge.wasMerged
                ? "\(from) was \(merge.into) already."
                : "\(from) is \(merge.into) from now on; \(things) moved.")
    }
}

struct CustomerSplitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "split", "Undoes a merge: the name stands for its own customer again.",
        notes: """
            Subscriptions, purchases and uploads that moved with the merge go back. Those that came later stay with \
            the other customer, and so do manual grants.
            """,
        examples: """
            perennial customer split --app com.example.app --customer anonymous-7 --reason "another person"
            """)

    @Option(help: ArgumentHelp("The name that was merged.", valueName: "C"))
    var customer: String

    @OptionGroup var decision: DecisionFlags
    @OptionGroup var flags: AppFlags

    func run() async throws {
        let decided = try decision.decision
        let split = try await flags.ledger {
            try await $0.customers.split(customer, of: flags.app, deciding: decided)
        }
        let things = split.things.of("subscription or purchase", "subscriptions and purchases")
        printLine("\(customer) is not \(split.from) any more; \(things) went back.")
    }
}

struct CustomerEraseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "erase", "Removes a customer's personal data; figures stay under a random name.",
        notes: """
            It removes the receipts that only this customer uploaded, with Apple's answers about them. It also removes \
            the customer's uploads, imported claims, account tokens, what is personal in orders, the reasons of manual \
            decisions about the customer, and the id itself with every name merged into it. Open orders are cancelled, \
            and due deliveries skipped. Periods, prices and events stay. The reason \
            given here stays too, so name no person in it. An erasure cannot be undone. Backups and replicas' logs \
            keep their copies until they are deleted.
            """,
        examples: """
            perennial customer erase --app com.example.app --customer c1 --reason "asked on 20 November" --yes
            """)

    @Flag(help: "Do it; without this flag the command changes nothing.")
    var yes = false

    @OptionGroup var decision: DecisionFlags
    @OptionGroup var flags: CustomerFlags

    func run() async throws {
        let decided = try decision.decision
        guard yes else {
            throw Failure("Nothing was erased: this cannot be undone; add --yes to erase \(flags.customer).")
        }
        let erasure = try await flags.ledger {
            try await $0.customers.erase(flags.customer, of: flags.app, deciding: decided)
        }
        printLine(
            """
            Erased. Figures go on as \(erasure.pseudonym).
            Receipts erased: \(erasure.receipts); kept because others uploaded them too: \(erasure.sharedReceipts).
            Subscriptions and purchases without an owner now: \(erasure.things).
            """)
    }
}

struct CustomerShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "show", "Shows everything that is kept of a customer.",
        notes: """
            It shows the customer's entitlements, present and past ownerships with their causes, manual grants, \
            receipts, orders with their log, deliveries, and balances of credits. `perennial explain` says why the customer has each entitlement.
            """,
        examples: "perennial customer show --app com.example.app --customer c1")

    @Option(help: "table for people, or json, which is stable.")
    var format = TableForm.table

    @OptionGroup var flags: CustomerFlags

    func run() async throws {
        let file = try await flags.ledger { try await $0.customers.export(flags.customer, of: flags.app) }
        switch format {
        case .table: printStyled(file.text(in: Terminal.style))
        case .json: printExactly(file.json.rendered(pretty: true))
        }
    }
}

extension CustomerExport {
    /// The data for human readers, without text that a terminal would obey; its tables fit a terminal of this style.
    func text(in style: TerminalStyle? = nil) -> String {
        let names = otherNames.isEmpty ? name : "\(name), also known as \(otherNames.joined(separator: ", "))"
        let tables = sections.map { section in
            section.listing.rows.isEmpty ? "No \(section.title)." : section.listing.table(in: style)
        }
        return ([names.visible] + tables).joined(separator: "\n\n")
    }

    var json: JSONValue {
        var fields: [String: JSONValue] = [
            "customer": .string(name), "other_names": .array(otherNames.map { .string($0) }),
        ]
        for section in sections { fields[section.key] = section.listing.json }
        return .object(fields)
    }

    private var sections: [(key: String, title: String, listing: Listing)] {
        [
            ("entitlements", "entitlements", rights), ("ownerships", "subscriptions or purchases", owned),
            ("grants", "manual grants", given), ("receipts", "receipts", uploaded), ("orders", "orders", ordered),
            ("order_log", "changes of orders", changes), ("deliveries", "deliveries", Listing(purchases.deliveries)),
            ("balances", "balances", balances),
        ]
    }

    private var rights: Listing {
        entitlements.listing([
            ("entitlement", { .string($0.name) }), ("granted", { .bool($0.granted) }),
            ("until", { .optional($0.until) }), ("product_id", { .optional($0.productID?.text) }),
            ("state", { .optional($0.state) }), ("reason", { .optional($0.reason) }), ("basis", { .string($0.basis) }),
            ("ended_at", { .optional($0.endedAt) }),
        ])
    }

    private var owned: Listing {
        ownerships.listing([
            ("original_transaction_id", { .string($0.originalTransactionID.text) }),
            ("environment", { .string($0.environment.rawValue) }),
            ("kind", { .string($0.isSubscription ? "subscription" : "purchase") }),
            ("product_id", { .optional($0.productID?.text) }), ("state", { .optional($0.state) }),
            ("ends_at", { .optional($0.endsAt) }), ("cause", { .optional($0.cause?.rawValue) }),
            ("since", { .optional($0.since) }), ("until", { .optional($0.until) }),
            ("went_to", { .optional($0.wentTo) }),
        ])
    }

    private var given: Listing {
        grants.listing([
            ("entitlement", { .string($0.entitlement) }), ("since", { .string($0.since.iso8601) }),
            ("until", { .optional($0.until) }), ("given_by", { .string($0.givenBy) }),
            ("reason", { .string($0.reason) }), ("ended_by", { .optional($0.endedBy) }),
            ("end_reason", { .optional($0.endReason) }),
        ])
    }

    private var uploaded: Listing {
        receipts.listing([
            ("receipt_id", { .string($0.id.description) }), ("received_at", { .string($0.receivedAt.iso8601) }),
            ("verified_at", { .optional($0.verifiedAt) }), ("outcome", { .optional($0.outcome) }),
            ("reason", { .optional($0.reason) }), ("next_check_at", { .optional($0.nextCheckAt) }),
        ])
    }

    private var ordered: Listing {
        purchases.orders.listing([
            ("order_id", { .string($0.order.id) }), ("product_id", { .string($0.order.productID.text) }),
            ("quantity", { .integer(Int64($0.order.quantity)) }),
            ("price", { one in .optional(one.priceMilliunits.map { Milliunits($0).decimal }) }),
            ("currency", { .optional($0.currency) }), ("environment", { .optional($0.order.environment?.rawValue) }),
            ("state", { .string($0.order.state.rawValue) }), ("cause", { .string($0.order.cause) }),
            ("created_at", { .string($0.order.createdAt.iso8601) }),
            ("expires_at", { .string($0.order.expiresAt.iso8601) }), ("paid_at", { .optional($0.order.paidAt) }),
            ("transaction_id", { .optional($0.order.transactionID) }),
        ])
    }

    private var changes: Listing {
        Listing(
            columns: ["order_id", "state", "cause", "code", "at"],
            rows: purchases.orders.flatMap { one in
                one.changes.map { change in
                    [
                        .string(one.order.id), .string(change.state.rawValue), .string(change.cause),
                        .optional(change.code), .string(change.at.iso8601),
                    ]
                }
            })
    }

    private var balances: Listing {
        purchases.balances.listing([
            ("credit", { .string($0.credit) }), ("environment", { .string($0.environment.rawValue) }),
            ("units", { .integer($0.units) }),
        ])
    }
}
