import ArgumentParser
import Ledger
import Subscriptions

/// `perennial app offer-key`
struct AppOfferKeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "offer-key",
        abstract: "Stores the key that signs an app's promotional offers, or takes it away.",
        discussion: """
            The key is the .p8 file of a Subscription or In-App Purchase key of App Store Connect. It replaces an \
            earlier one, is sealed with the master key, and is never printed. The issuer id stands above the keys in \
            App Store Connect; the form jws needs it.

            Example:
              perennial app offer-key com.example.app --key-file SubscriptionKey_2X9R4HXF34.p8 --key-id 2X9R4HXF34
            """)

    /// The most bytes of a key's file; Apple's have about 260.
    private static let bytesMax = 8_192

    @Argument(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var bundleID: BundleID

    @Option(help: ArgumentHelp("The .p8 file, or - for standard input.", valueName: "F|-"))
    var keyFile: String?

    @Option(help: ArgumentHelp("The key's id in App Store Connect.", valueName: "K"))
    var keyId: String?

    @Option(help: ArgumentHelp("The issuer id of App Store Connect.", valueName: "I"))
    var issuerId: String?

    @ArgumentParser.Flag(help: "Take the key away.")
    var remove = false

    @OptionGroup var flags: SettingsFlags

    func validate() throws {
        let isKeyGiven = [keyFile, keyId, issuerId].contains { $0 != nil }
        guard remove || (keyFile != nil && keyId != nil) else {
            throw ValidationError("Give --key-file and --key-id, or --remove.")
        }
        guard !remove || !isKeyGiven else { throw ValidationError("--remove goes with no other flag.") }
    }

    func run() async throws {
        let settings = try flags.settings(needing: remove ? [.database] : [.database, .masterKey])
        guard let keyFile, let keyId else {
            try await withLedger(settings) { try await $0.apps.removeOfferKey(of: bundleID) }
            return printLine("\(bundleID) has no offer key any more.")
        }
        let text = String(decoding: try InputFile(keyFile).contents(bytesMax: Self.bytesMax), as: UTF8.self)
        let key = try ConnectKey(pem: text, id: keyId, issuer: issuerId)
        try await withLedger(settings) { try await $0.apps.storeOfferKey(key, of: bundleID) }
        printLine("Stored the offer key \(keyId) of \(bundleID)\(issuerId == nil ? ", without an issuer" : "").")
    }
}
