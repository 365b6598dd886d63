import ArgumentParser
import Ledger
import Server
import Subscriptions
import Tracking

/// `perennial receipt`
struct ReceiptCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "receipt",
        abstract: "Stores, checks and shows single receipts.",
        discussion: """
            Example:
              perennial receipt add --app com.example.app --customer c1 receipt.txt
            """,
        subcommands: [
            ReceiptAddCommand.self, ReceiptCheckCommand.self, ReceiptListCommand.self, ReceiptShowCommand.self,
        ])
}

/// `perennial receipt list`
struct ReceiptListCommand: AsyncParsableCommand {
    /// The most receipts of one list.
    static let receiptsMax = 100_000

    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Lists stored receipts, newest first.",
        discussion: """
            Example:
              perennial receipt list --app com.example.app --customer c1
            """)

    @Option(help: ArgumentHelp("Only this app's.", valueName: "B"))
    var app: BundleID?

    @Option(help: ArgumentHelp("Only this customer's.", valueName: "C"))
    var customer: String?

    @Option(help: ArgumentHelp("At most this many.", valueName: "N"))
    var limit = 100

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: SettingsFlags

    func validate() throws {
        guard (1...Self.receiptsMax).contains(limit) else {
            throw ValidationError("--limit is a number from 1 to \(Self.receiptsMax).")
        }
    }

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        form.show(
            Listing(
                receipts: try await withLedger(settings) {
                    try await $0.customers.receipts(app: app, customer: customer, limit: limit)
                }))
    }
}

/// `perennial receipt show`
struct ReceiptShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Shows one stored receipt: what it holds and when Apple is asked again.",
        discussion: """
            Example:
              perennial receipt show 17
            """)

    @Argument(help: ArgumentHelp("The receipt's number.", valueName: "ID"))
    var id: Int64

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        let receipts = try await withLedger(settings) { try await $0.customers.receipts(id: ReceiptID(id), limit: 1) }
        guard !receipts.isEmpty else { throw Failure("There is no receipt \(id); see `perennial receipt list`.") }
        form.show(Listing(receipts: receipts))
    }
}

extension Listing {
    init(receipts: [StoredReceipt]) {
        self.init(columns: [
            "receipt_id", "bundle_id", "environment", "outcome", "customers", "subscriptions", "received_at",
            "asked_at",
            "verified_at", "next_check_at", "reason", "form", "vouching",
        ])
        rows = receipts.map { receipt in
            [
                .string(receipt.id.description), .string(receipt.bundleID.text),
                .optional(receipt.environment?.rawValue),
                .optional(receipt.outcome), .array(receipt.customers.map { .string($0) }),
                .array(receipt.subscriptions.map { .string($0.text) }), .string(receipt.receivedAt.iso8601),
                .optional(receipt.askedAt), .optional(receipt.verifiedAt), .optional(receipt.nextCheckAt),
                .optional(receipt.reason), .string(receipt.form.rawValue), .string(receipt.vouching.rawValue),
            ]
        }
    }
}
