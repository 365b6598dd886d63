import ArgumentParser
import JSON
import Subscriptions
import Tracking

struct KeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "key", "Makes and ends keys of the HTTP API.",
        notes: "Only a hash of a key is stored: it is shown once, when it is made.",
        examples: "perennial key create --scope write --app com.example.app",
        subcommands: [KeyCreateCommand.self, KeyListCommand.self, KeyRevokeCommand.self])
}

extension Scope: ExpressibleByArgument {}

struct KeyCreateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "create", "Makes a key and prints it, the only time it can be seen.",
        notes: "The key is all that standard output gets; its number goes to standard error.",
        examples: "perennial key create --scope read > api-key")

    @Option(help: "read: look up; write: look up and send receipts; admin: everything.")
    var scope: Scope

    @Option(help: ArgumentHelp("The only app the key may speak about; every app unless given.", valueName: "B"))
    var app: BundleID?

    @Option(
        RequestRate.perSecondAllowed, orZero: true,
        help: ArgumentHelp("Requests a second to each server; 0 is unlimited, 20000 unless given.", valueName: "N"))
    var rate: Double?

    @Option(
        RequestRate.burstAllowed,
        help: ArgumentHelp("Requests at once after a pause; twice the rate unless given.", valueName: "N"))
    var burst: Double?

    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let allowed = RequestRate(perSecond: rate ?? RequestRate.usual.perSecond, burst: burst)
        let key = try await flags.ledger { try await $0.apps.createKey(scope: scope, for: app, rate: allowed) }
        printError("Key \(key.id) may \(scope.rawValue)\(app.map { " for \($0)" } ?? "").")
        try printSecret(
            key.secret, ifLost: "The key is lost: run `perennial key revoke \(key.id)`, and make another one.")
    }
}

struct KeyListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "list", "Lists every key that was ever made, without the keys themselves.",
        examples: "perennial key list")

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        form.show(Listing(keys: try await flags.ledger { try await $0.apps.keys() }))
    }
}

struct KeyRevokeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "revoke", "Ends a key.",
        notes: "Running servers notice within ten seconds.",
        examples: "perennial key revoke 3")

    @Argument(help: ArgumentHelp("The key's number; see `perennial key list`.", valueName: "ID"))
    var id: Int32

    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        try await flags.ledger { try await $0.apps.revokeKey(id) }
        printLine("Revoked key \(id).")
    }
}

extension Listing {
    init(keys: [ListedAPIKey]) {
        self = keys.listing([
            ("key_id", { .string("\($0.key.id)") }), ("scope", { .string($0.key.scope.rawValue) }),
            ("bundle_id", { .optional($0.key.bundleID?.text) }), ("rate", { .number($0.key.rate.perSecond) }),
            ("burst", { .number($0.key.rate.burst) }), ("created_at", { .string($0.createdAt.iso8601) }),
            ("revoked_at", { .optional($0.revokedAt) }),
        ])
    }
}
