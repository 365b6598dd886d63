import ArgumentParser
import Ledger
import Server
import Subscriptions

/// `perennial app list`
struct AppListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Lists the registered apps.",
        discussion: """
            Example:
              perennial app list --format json
            """)

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        form.show(Listing(apps: try await withLedger(settings) { try await $0.apps.all() }))
    }
}

/// `perennial app show`
struct AppShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Shows one app's settings.",
        discussion: """
            Example:
              perennial app show com.example.app
            """)

    @Argument(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var bundleID: BundleID

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        form.show(Listing(apps: [try await withLedger(settings) { try await $0.apps.app(bundleID) }]))
    }
}

extension Listing {
    init(apps: [App]) {
        self.init(columns: [
            "bundle_id", "name", "secret", "sandbox", "ownership", "rate", "burst", "leeway_s", "sandbox_leeway_s",
            "outage_allowance_s", "paused_until", "pause_reason", "sweep", "notifications",
            "pre_check_s", "offer_key_id", "offer_issuer_id", "verifier", "server_key_id", "server_issuer_id",
            "apple_app_id",
        ])
        rows = apps.map { app in
            [
                .string(app.bundleID.text), .string(app.name), .bool(app.hasSecret), .bool(app.sandboxAllowed),
                .string(app.ownershipPolicy.rawValue), .number(app.callsPerSecond), .number(app.burst),
                .integer(app.leeway.milliseconds / 1_000), .integer(app.sandboxLeeway.milliseconds / 1_000),
                .integer(app.outageAllowance.milliseconds / 1_000), .optional(app.pauses.first?.until),
                .optional(app.pauses.first?.reason), .string(app.sweep.rawValue), .bool(app.takesNotifications),
                .integer(app.preCheckSpread.milliseconds / 1_000), .optional(app.offerKey?.id),
                .optional(app.offerKey?.issuer), .string(app.verifier.rawValue), .optional(app.serverKey?.id),
                .optional(app.serverKey?.issuer), app.appleAppID.map { .integer($0) } ?? .null,
            ]
        }
    }
}

extension JSONValue {
    /// Returns a number in its usual form: whole numbers without decimals, others as text.
    static func number(_ value: Double) -> JSONValue {
        Int64(exactly: value).map { .integer($0) } ?? .string("\(value)")
    }
}
