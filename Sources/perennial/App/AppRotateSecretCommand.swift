import ArgumentParser
import Subscriptions

/// `perennial app rotate-secret`
struct AppRotateSecretCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate-secret",
        abstract: "Replaces an app's shared secret; the present one stays as the previous one.",
        discussion: """
            A pause of the app, because Apple refused the old secret, ends.

            Example:
              perennial app rotate-secret com.example.app --shared-secret-file secret
            """)

    @Argument(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var bundleID: BundleID

    @Option(help: ArgumentHelp("A file with the new secret, or - for standard input.", valueName: "F|-"))
    var sharedSecretFile: String

    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database, .masterKey])
        let secret = try SecretFile(file: InputFile(sharedSecretFile)).secret()
        try await withLedger(settings) { try await $0.rotateSecret(of: bundleID, to: secret) }
        say("Replaced the shared secret of \(bundleID).")
    }
}
