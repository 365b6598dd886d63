import ArgumentParser
import Ledger
import Server
import Subscriptions
import Tracking

/// `perennial entitlements`
struct EntitlementsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "entitlements",
        abstract: "Says what a customer may use, until when, why, and how fresh that is.",
        discussion: """
            --at asks about another moment; --known-at asks what was known then. An unknown customer has no \
            entitlements.

            Example:
              perennial entitlements --app com.example.app --customer c1 --at 2026-01-31T12:00:00Z
            """)

    @Option(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var app: BundleID

    @Option(help: ArgumentHelp("Your own id of the customer.", valueName: "C"))
    var customer: String

    @Option(help: ArgumentHelp("The moment asked about, in ISO 8601; now unless given.", valueName: "T"))
    var at: Instant?

    @Option(help: ArgumentHelp("What was known at this moment, in ISO 8601; now unless given.", valueName: "T"))
    var knownAt: Instant?

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        let entitlements = try await withLedger(settings) { ledger in
            _ = try await ledger.apps.app(app)
            return try await ledger.customers.entitlements(app: app, customer: customer, at: at, knownAt: knownAt)
        }
        var listing = Listing(columns: [
            "entitlement", "granted", "until", "product_id", "state", "reason", "environment", "basis", "as_of",
            "checked_at", "ended_at",
        ])
        listing.rows = entitlements.map { right in
            [
                .string(right.name), .bool(right.granted), .optional(right.until), .optional(right.productID?.text),
                .optional(right.state), .optional(right.reason), .string(right.environment.rawValue),
                .string(right.basis), .optional(right.asOf), .optional(right.checkedAt), .optional(right.endedAt),
            ]
        }
        form.show(listing)
    }
}
