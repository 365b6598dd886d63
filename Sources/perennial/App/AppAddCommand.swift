import ArgumentParser
import Ledger
import Subscriptions

/// `perennial app add`
struct AppAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Registers an app.",
        discussion: """
            The shared secret is the app-specific one of App Store Connect. A trailing newline in its file is ignored.

            Example:
              pass show appstore | perennial app add --bundle-id com.example.app --shared-secret-file -
            """)

    @Option(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var bundleId: BundleID

    @Option(help: ArgumentHelp("A name for people.", valueName: "N"))
    var name: String?

    @Option(help: ArgumentHelp("A file with the app's shared secret, or - for standard input.", valueName: "F|-"))
    var sharedSecretFile: String?

    @Option(help: ArgumentHelp("A file with the secret before the last rotation.", valueName: "F"))
    var previousSecretFile: String?

    @Option(help: "Whether purchases of Apple's sandbox count.")
    var sandbox = SandboxChoice.allow

    @OptionGroup var budget: BudgetFlags
    @OptionGroup var flags: SettingsFlags

    func validate() throws {
        guard bundleId.text.wholeMatch(of: /[A-Za-z0-9.-]{1,155}/) != nil else {
            throw ValidationError(
                "--bundle-id \(bundleId): Apple's bundle ids have up to 155 letters, digits, hyphens and periods.")
        }
    }

    func run() async throws {
        let sealsSecret = sharedSecretFile != nil || previousSecretFile != nil
        let settings = try flags.settings(needing: sealsSecret ? [.database, .masterKey] : [.database])
        let new = NewApp(
            bundleID: bundleId, name: name,
            secret: try sharedSecretFile.map { try SecretFile(file: InputFile($0)).secret() },
            previousSecret: try previousSecretFile.map { try SecretFile(file: InputFile($0)).secret() },
            sandboxAllowed: sandbox == .allow, callsPerSecond: budget.rate ?? 50, burst: budget.burst)
        try await withLedger(settings) { try await $0.apps.add(new) }
        printLine("Registered \(bundleId)\(sharedSecretFile == nil ? " without a shared secret" : "").")
    }
}
