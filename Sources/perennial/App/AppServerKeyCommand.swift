import ArgumentParser
import Ledger
import Subscriptions

/// `perennial app server-key`
struct AppServerKeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "server-key",
        abstract: "Stores the key that signs an app's requests to the App Store Server API, or takes it away.",
        discussion: """
            The key is the .p8 file of an In-App Purchase key of App Store Connect. It replaces an earlier one, is sealed \
            with the master key, and is never printed. The issuer id stands above the keys in App Store Connect. A pause \
            because Apple refused the earlier key ends.

            Example:
              perennial app server-key --app com.example.app --key-id 2X9R4HXF34 \\
                  --issuer-id 57246542-96fe-1a63-e053-0824d011072a --key-file SubscriptionKey_2X9R4HXF34.p8
            """)

    /// The most bytes of a key's file; Apple's have about 260.
    private static let bytesMax = 8_192

    @Option(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var app: BundleID

    @Option(help: ArgumentHelp("The key's id in App Store Connect.", valueName: "K"))
    var keyId: String?

    @Option(help: ArgumentHelp("The issuer id of App Store Connect.", valueName: "I"))
    var issuerId: String?

    @Option(help: ArgumentHelp("The .p8 file, or - for standard input.", valueName: "F|-"))
    var keyFile: String?

    @ArgumentParser.Flag(help: "Take the key away.")
    var remove = false

    @OptionGroup var flags: SettingsFlags

    func validate() throws {
        let given = [keyFile, keyId, issuerId].compactMap(\.self).count
        guard remove ? given == 0 : given == 3 else {
            throw ValidationError("Give --key-id, --issuer-id and --key-file, or --remove alone.")
        }
    }

    func run() async throws {
        let settings = try flags.settings(needing: remove ? [.database] : [.database, .masterKey])
        guard let keyFile, let keyId else {
            try await withLedger(settings) { try await $0.apps.removeServerKey(of: app) }
            return printLine("\(app) has no server key any more.")
        }
        let text = String(decoding: try InputFile(keyFile).contents(bytesMax: Self.bytesMax), as: UTF8.self)
        let key = try ConnectKey(pem: text, id: keyId, issuer: issuerId)
        try await withLedger(settings) { try await $0.apps.storeServerKey(key, of: app) }
        printLine("Stored the server key \(keyId) of \(app).")
    }
}
