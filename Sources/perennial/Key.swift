import ArgumentParser
import JSON
import Server
import Subscriptions
import Tracking

/// `perennial key`
struct KeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key",
        abstract: "Makes and ends keys of the HTTP API.",
        discussion: """
            Only a hash of a key is stored: it is shown once, when it is made.

            Example:
              perennial key create --scope write --app com.example.app
            """,
        subcommands: [KeyCreateCommand.self, KeyListCommand.self, KeyRevokeCommand.self])
}

extension Scope: ExpressibleByArgument {}

/// `perennial key create`
struct KeyCreateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Makes a key and prints it, the only time it can be seen.",
        discussion: """
            The key is all that standard output gets; its number goes to standard error.

            Example:
              perennial key create --scope read > api-key
            """)

    @Option(help: "read: look up; write: look up and send receipts; admin: everything.")
    var scope: Scope

    @Option(help: ArgumentHelp("The only app the key may speak about; every app unless given.", valueName: "B"))
    var app: BundleID?

    @Option(help: ArgumentHelp("Requests a second to each server; 0 is unlimited, 20000 unless given.", valueName: "N"))
    var rate: Double?

    @Option(help: ArgumentHelp("Requests at once after a pause; twice the rate unless given.", valueName: "N"))
    var burst: Double?

    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let allowed = RequestRate(perSecond: rate ?? RequestRate.usual.perSecond, burst: burst)
        let key = try await flags.ledger { try await $0.apps.createKey(scope: scope, for: app, rate: allowed) }
        printError("Key \(key.id) may \(scope.rawValue)\(app.map { " for \($0)" } ?? "").")
        printLine(key.secret)
    }
}

/// `perennial key list`
struct KeyListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Lists every key that was ever made, without the keys themselves.",
        discussion: """
            Example:
              perennial key list
            """)

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        form.show(Listing(keys: try await flags.ledger { try await $0.apps.keys() }))
    }
}

/// `perennial key revoke`
struct KeyRevokeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Ends a key.",
        discussion: """
            Running servers notice within ten seconds.

            Example:
              perennial key revoke 3
            """)

    @Argument(help: ArgumentHelp("The key's number; see `perennial key list`.", valueName: "ID"))
    var id: Int32

    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        try await flags.ledger { try await $0.apps.revokeKey(id) }
        printLine("Revoked key \(id).")
    }
}

extension Listing {
    /// API keys, one a row.
    init(keys: [ListedAPIKey]) {
        self.init(columns: ["key_id", "scope", "bundle_id", "rate", "burst", "created_at", "revoked_at"])
        rows = keys.map { listed in
            [
                .string("\(listed.key.id)"), .string(listed.key.scope.rawValue),
                .optional(listed.key.bundleID?.text), .number(listed.key.rate.perSecond),
                .number(listed.key.rate.burst), .string(listed.createdAt.iso8601), .optional(listed.revokedAt),
            ]
        }
    }
}
