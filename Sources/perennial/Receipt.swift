import ArgumentParser
import Foundation
import JSON
import Subscriptions
import Tracking

struct ReceiptAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "add", "Stores one receipt and verifies it now.",
        notes: """
            The file holds base64 as the app sent it, or the receipt file of a device. An app without receipts sends a \
            signed transaction of StoreKit 2 or the id of a transaction instead; both need `perennial app server-key`. \
            Exits 0 when Apple vouched for it; otherwise 1, and the receipt stays stored and is asked about again.
            """,
        examples: """
            perennial receipt add --app com.example.app --customer c1 receipt.txt
            perennial receipt add --app com.example.app --customer c1 --transaction-id 2000000123456789
            """)

    private static let signedBytesMax = 1 << 18

    @Argument(help: ArgumentHelp("The receipt's file, or - for standard input.", valueName: "FILE|-"))
    var file: InputFile?

    @Option(help: ArgumentHelp("The file of a signed transaction, or - for standard input.", valueName: "FILE|-"))
    var signedTransaction: InputFile?

    @Option(help: ArgumentHelp("The id of a transaction.", valueName: "ID"))
    var transactionId: String?

    @OptionGroup var apple: AppleFlags
    @OptionGroup var flags: CustomerFlags

    func validate() throws {
        guard [file != nil, signedTransaction != nil, transactionId != nil].count(where: \.self) == 1 else {
            throw ValidationError(
                "Give the receipt's file, --signed-transaction or --transaction-id: exactly one of them.")
        }
    }

    func run() async throws {
        let subject = try subject
        let answer = try await flags.tracker(apple) {
            try await $0.submit(Submission(bundleID: flags.app, customer: flags.customer, subject: subject))
        }
        switch answer {
        case .settled(let settled, customer: _):
            printStyled(settled.text(in: Terminal.style))
            if let failure = settled.failure { throw failure }
        case .pending(let receipt, let reason, _):
            throw Failure("Receipt \(receipt) is stored but not verified yet: \(reason)")
        }
    }

    private var subject: Submission.Subject {
        get throws {
            if let transactionId { return .transactionID(transactionId) }
            if let signedTransaction {
                let text = try signedTransaction.text(bytesMax: Self.signedBytesMax)
                return .signedTransaction(text.trimmingCharacters(in: .whitespacesAndNewlines))
            }
            return .receipt(try (file ?? InputFile(path: "-")).receipt())
        }
    }
}

struct ReceiptCheckCommand: AsyncParsableCommand {
    static let receiptsMax = 100

    static let configuration = CommandConfiguration(
        "check", "Verifies a stored receipt now, or a customer's receipts, and prints what changed.",
        examples: """
            perennial receipt check --receipt 17
            perennial receipt check --app com.example.app --customer c1
            """)

    @Option(1...Int64.max, help: ArgumentHelp("The receipt's number; see `perennial receipt list`.", valueName: "ID"))
    var receipt: Int64?

    @Option(help: ArgumentHelp("Your own id of the customer.", valueName: "C"))
    var customer: String?

    @Option(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var app: BundleID?

    @OptionGroup var apple: AppleFlags
    @OptionGroup var flags: SettingsFlags

    func validate() throws {
        guard receipt == nil ? customer != nil && app != nil : customer == nil && app == nil else {
            throw ValidationError("Give either --receipt, or --customer with --app.")
        }
    }

    func run() async throws {
        let failures = try await flags.tracker(apple) { tracker in
            var failures: [Failure] = []
            for receipt in try await receipts(in: tracker.ledger) {
                let settled = try await tracker.check(receipt)
                try await tracker.ledger.audit(.receiptChecked, app: app, customer: customer, receipt: receipt)
                printStyled(settled.text(in: Terminal.style))
                if let failure = settled.failure { failures.append(failure) }
            }
            return failures
        }
        if !failures.isEmpty { throw Failure(failures.map(\.description).joined(separator: " ")) }
    }

    private func receipts(in ledger: SubscriptionLedger) async throws -> [ReceiptID] {
        if let receipt { return [ReceiptID(receipt)] }
        guard let app, let customer else { return [] }
        _ = try await ledger.apps.app(app)
        let stored = try await ledger.customers.receipts(app: app, customer: customer, limit: Self.receiptsMax)
        guard !stored.isEmpty else {
            throw Failure("Customer \(customer) of \(app) has no receipts; see `perennial receipt list`.")
        }
        return stored.map(\.id).sorted()
    }
}

struct ReceiptCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "receipt", "Stores, checks and shows single receipts.",
        examples: "perennial receipt add --app com.example.app --customer c1 receipt.txt",
        subcommands: [
            ReceiptAddCommand.self, ReceiptCheckCommand.self, ReceiptListCommand.self, ReceiptShowCommand.self,
        ])
}

struct ReceiptListCommand: AsyncParsableCommand {
    static let receiptsMax = 100_000

    static let configuration = CommandConfiguration(
        "list", "Lists stored receipts, newest first.",
        examples: "perennial receipt list --app com.example.app --customer c1")

    @Option(help: ArgumentHelp("Only this app's.", valueName: "B"))
    var app: BundleID?

    @Option(help: ArgumentHelp("Only this customer's.", valueName: "C"))
    var customer: String?

    @Option(1...receiptsMax, help: ArgumentHelp("At most this many.", valueName: "N"))
    var limit = 100

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let receipts = try await flags.ledger {
            try await $0.customers.receipts(app: app, customer: customer, limit: limit)
        }
        form.show(Listing(receipts: receipts))
    }
}

struct ReceiptShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "show", "Shows one stored receipt: what it holds and when Apple is asked again.",
        examples: "perennial receipt show 17")

    @Argument(help: ArgumentHelp("The receipt's number.", valueName: "ID"))
    var id: Int64

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let receipts = try await flags.ledger { try await $0.customers.receipts(id: ReceiptID(id), limit: 1) }
        guard !receipts.isEmpty else { throw Failure("There is no receipt \(id); see `perennial receipt list`.") }
        form.show(Listing(receipts: receipts))
    }
}

extension Listing {
    init(receipts: [StoredReceipt]) {
        self = receipts.listing([
            ("receipt_id", { .string($0.id.description) }), ("bundle_id", { .string($0.bundleID.text) }),
            ("environment", { .optional($0.environment?.rawValue) }), ("outcome", { .optional($0.outcome) }),
            ("customers", { receipt in .array(receipt.customers.map { .string($0) }) }),
            ("subscriptions", { receipt in .array(receipt.subscriptions.map { .string($0.text) }) }),
            ("received_at", { .string($0.receivedAt.iso8601) }), ("asked_at", { .optional($0.askedAt) }),
            ("verified_at", { .optional($0.verifiedAt) }), ("next_check_at", { .optional($0.nextCheckAt) }),
            ("reason", { .optional($0.reason) }), ("form", { .string($0.form.rawValue) }),
            ("vouching", { .string($0.vouching.rawValue) }),
        ])
    }
}

extension Settled {
    /// What a check found, without text that a terminal would obey; its tables fit a terminal of this style.
    func text(in style: TerminalStyle? = nil) -> String {
        var parts = ["Receipt \(receiptID): \(outcome.rawValue)\(reason.map { ", \($0)" } ?? "")".visible]
        if !subscriptions.isEmpty { parts.append(Listing(subscriptions: subscriptions).table(in: style)) }
        let changes = Listing(changes: self)
        if changes.rows.isEmpty {
            if outcome == .verified { parts.append("Nothing changed.") }
        } else {
            parts.append("Changes:\n\(changes.table(in: style))")
        }
        parts.append(nextCheckAt.map { "Next check: \($0.iso8601)" } ?? "No further check is planned.")
        return parts.joined(separator: "\n")
    }

    var failure: Failure? {
        switch outcome {
        case .verified: nil
        case .rejected: Failure("Apple does not vouch for receipt \(receiptID): \(reason ?? "it gave no reason.")")
        case .indeterminate:
            Failure("Apple gave no usable answer about receipt \(receiptID): \(reason ?? "try again.")")
        }
    }
}

extension Listing {
    fileprivate init(subscriptions: [Settled.SubscriptionOutcome]) {
        self = subscriptions.listing([
            ("subscription", { .string($0.id.text) }), ("environment", { .string($0.environment.rawValue) }),
            ("product", { .string($0.verdict.productID.text) }), ("state", { .string($0.verdict.state.rawValue) }),
            ("reason", { .optional($0.verdict.reason?.rawValue) }), ("entitled", { .bool($0.verdict.entitled) }),
            ("until", { .optional($0.verdict.entitledUntil) }),
            ("flags", { outcome in .array(outcome.verdict.flags.map { .string($0.rawValue) }) }),
            ("ownership", { .string($0.owners) }),
        ])
    }

    fileprivate init(changes settled: Settled) {
        self.init(columns: ["occurred_at", "kind", "subscription", "product"])
        for subscription in settled.subscriptions {
            rows += subscription.events.map { Self.row(of: $0, in: subscription.id.text) }
        }
        rows += settled.purchaseEvents.map { Self.row(of: $0, in: nil) }
    }

    private static func row(of event: Event, in subscription: String?) -> [JSONValue] {
        [
            .string(event.occurredAt.iso8601), .string(event.kind.rawValue), .optional(subscription),
            .string(event.productID.text),
        ]
    }
}

extension Settled.SubscriptionOutcome {
    fileprivate var owners: String {
        ownership.sorted { $0.key.text < $1.key.text }.map { "\($0.key.text) \($0.value.text)" }.joined(separator: ", ")
    }
}

extension OwnershipAnswer {
    fileprivate var text: String {
        switch self {
        case .held: "held"
        case .assigned: "assigned"
        case .transferred: "transferred"
        case .refused(let reason): "refused (\(reason))"
        }
    }
}
