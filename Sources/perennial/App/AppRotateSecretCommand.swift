import ArgumentParser
import Ledger
import Subscriptions
import Tracking

/// `perennial app rotate-secret`
struct AppRotateSecretCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate-secret",
        abstract: "Replaces an app's shared secret; the present one stays as the previous one.",
        discussion: """
            The command tries the new secret on a stored receipt, where there is one. If Apple refuses the secret \
            (21004), nothing changes and the exit status is 1, unless --force is given. A secret that could not be \
            tried is put in place; the log says when Apple refuses it later. A pause because Apple refused the old \
            secret ends as soon as Apple accepts the new one about a stored receipt, which is tried at once.

            Example:
              perennial app rotate-secret com.example.app --shared-secret-file secret
            """)

    @Argument(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var bundleID: BundleID

    @Option(help: ArgumentHelp("A file with the new secret, or - for standard input.", valueName: "F|-"))
    var sharedSecretFile: String

    @ArgumentParser.Flag(help: "Put it in place even if Apple refuses it.")
    var force = false

    @OptionGroup var apple: AppleFlags
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database, .masterKey], apple.values)
        let secret = try SecretFile(file: InputFile(sharedSecretFile)).secret()
        let trial = try await withLedger(settings) { ledger in
            let app = try await ledger.apps.app(bundleID)
            return try await withTracker(settings, ledger: ledger) { tracker in
                let trial = try await tracker.probeSecret(secret, of: app)
                if let refusal = trial.refusal(of: bundleID), !force { throw refusal }
                try await ledger.apps.rotateSecret(of: bundleID, to: secret)
                // A pause ends by a trial alone.
                await tracker.trySecrets(of: app)
                return trial
            }
        }
        printLine("Replaced the shared secret of \(bundleID). \(trial.sentence)")
    }
}

extension SecretProbe {
    /// Returns the reason why the secret is not set; nil when there is none.
    func refusal(of bundleID: BundleID) -> Failure? {
        switch self {
        case .refused(let receipt):
            Failure(
                "Apple refuses this shared secret (21004, receipt \(receipt)), so \(bundleID) keeps the one it has: copy the "
                    + "app-specific shared secret of App Store Connect anew, or put this one in place with --force.")
        case .accepted, .inconclusive, .noReceipt: nil
        }
    }

    /// The result of the trial, for human readers.
    var sentence: String {
        switch self {
        case .accepted(let receipt): "Apple accepts it (receipt \(receipt))."
        case .refused(let receipt):
            "Apple refuses it (21004, receipt \(receipt)): until the right one is in place, only the previous one is of use."
        case .inconclusive(let reason):
            "Whether Apple accepts it is not known: \(reason) The log shows when Apple refuses it."
        case .noReceipt: "No stored receipt holds a subscription to try it on; the log shows when Apple refuses it."
        }
    }
}
