import ArgumentParser
import JSON
import Subscriptions
import Tracking

struct AppRotateSecretCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "rotate-secret", "Replaces an app's shared secret; the present one stays as the previous one.",
        notes: """
            The command tries the new secret on a stored receipt, where there is one. If Apple refuses the secret \
            (21004), nothing changes and the exit status is 1, unless --force is given. A secret that could not be \
            tried is put in place; the log says when Apple refuses it later. A pause because Apple refused the old \
            secret ends as soon as Apple accepts the new one about a stored receipt, which is tried at once. Where \
            Apple is known to accept only the secret before the present one, that one stays the previous one.
            """,
        examples: "perennial app rotate-secret com.example.app --shared-secret-file secret")

    @Argument(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var bundleID: BundleID

    @Option(help: ArgumentHelp("A file with the new secret, or - for standard input.", valueName: "F|-"))
    var sharedSecretFile: InputFile

    @Flag(help: "Put it in place even if Apple refuses it.")
    var force = false

    @OptionGroup var apple: AppleFlags
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let secret = try sharedSecretFile.secret()
        let trial = try await flags.tracker(apple) { tracker in
            let apps = tracker.ledger.apps
            let app = try await apps.app(bundleID)
            let trial = try await tracker.probeSecret(secret, of: app)
            if let refusal = trial.refusal(of: bundleID), !force { throw refusal }
            try await apps.rotateSecret(of: bundleID, to: secret)
            // A pause ends by a trial alone.
            await tracker.trySecrets(of: app)
            return trial
        }
        printLine("Replaced the shared secret of \(bundleID). \(trial.sentence)")
    }
}

extension SecretProbe {
    func refusal(of bundleID: BundleID) -> Failure? {
        switch self {
        case .refused(let receipt):
            Failure(
                "Apple refuses this shared secret (21004, receipt \(receipt)), so \(bundleID) keeps the one it has: copy the "
                    + "app-specific shared secret of App Store Connect anew, or put this one in place with --force.")
        case .accepted, .inconclusive, .noReceipt: nil
        }
    }

    var sentence: String {
        switch self {
        case .accepted(let receipt): "Apple accepts it (receipt \(receipt))."
        case .refused(let receipt):
            "Apple refuses it (21004, receipt \(receipt)): until the right one is in place, only the previous one serves, if Apple accepts that."
        case .inconclusive(let reason):
            "Whether Apple accepts it is not known: \(reason) The log shows when Apple refuses it."
        case .noReceipt: "No stored receipt holds a subscription to try it on; the log shows when Apple refuses it."
        }
    }
}

/// A key of App Store Connect that a command stores or takes away.
struct ConnectKeyFlags: ParsableArguments {
    /// The most bytes of a key's file; Apple's have about 260.
    private static let bytesMax = 8_192

    @Option(help: ArgumentHelp("The .p8 file, or - for standard input.", valueName: "F|-"))
    var keyFile: InputFile?

    @Option(help: ArgumentHelp("The key's id in App Store Connect.", valueName: "K"))
    var keyId: String?

    @Option(help: ArgumentHelp("The issuer id of App Store Connect.", valueName: "I"))
    var issuerId: String?

    @Flag(help: "Take the key away.")
    var remove = false

    @OptionGroup var flags: SettingsFlags

    /// Stores the key of an app, or takes it away, and says so. `name` is its kind in words.
    func run(
        _ name: String, of app: BundleID, store: (ConnectKey, LedgerApps) async throws -> Void,
        remove: (LedgerApps) async throws -> Void
    ) async throws {
        guard let keyFile, let keyId else {
            try await flags.ledger { try await remove($0.apps) }
            return printLine("\(app) has no \(name) any more.")
        }
        let key = try ConnectKey(pem: keyFile.text(bytesMax: Self.bytesMax), id: keyId, issuer: issuerId)
        try await flags.ledger(sealing: true) { try await store(key, $0.apps) }
        printLine("Stored the \(name) \(keyId) of \(app)\(issuerId == nil ? ", without an issuer" : "").")
    }
}

struct AppServerKeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "server-key", "Stores the key that signs an app's requests to the App Store Server API, or takes it away.",
        notes: """
            The key is the .p8 file of an In-App Purchase key of App Store Connect. It replaces an earlier one, is sealed \
            with the master key, and is never printed. The issuer id stands above the keys in App Store Connect. A pause \
            because Apple refused the earlier key ends.
            """,
        examples: """
            perennial app server-key --app com.example.app --key-id 2X9R4HXF34 \\
                --issuer-id 57246542-96fe-1a63-e053-0824d011072a --key-file SubscriptionKey_2X9R4HXF34.p8
            """)

    @Option(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var app: BundleID

    @OptionGroup var key: ConnectKeyFlags

    func validate() throws {
        let given = [key.keyFile != nil, key.keyId != nil, key.issuerId != nil].count(where: \.self)
        guard key.remove ? given == 0 : given == 3 else {
            throw ValidationError("Give --key-id, --issuer-id and --key-file, or --remove alone.")
        }
    }

    func run() async throws {
        try await key.run("server key", of: app) {
            try await $1.storeServerKey($0, of: app)
        } remove: {
            try await $0.removeServerKey(of: app)
        }
    }
}

struct AppOfferKeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "offer-key", "Stores the key that signs an app's promotional offers, or takes it away.",
        notes: """
            The key is the .p8 file of a Subscription or In-App Purchase key of App Store Connect. It replaces an \
            earlier one, is sealed with the master key, and is never printed. The issuer id stands above the keys in \
            App Store Connect; the form jws needs it.
            """,
        examples:
            "perennial app offer-key com.example.app --key-file SubscriptionKey_2X9R4HXF34.p8 --key-id 2X9R4HXF34")

    @Argument(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var bundleID: BundleID

    @OptionGroup var key: ConnectKeyFlags

    func validate() throws {
        let isWhole = key.keyFile != nil && key.keyId != nil
        let isGiven = key.keyFile != nil || key.keyId != nil || key.issuerId != nil
        guard key.remove ? !isGiven : isWhole else {
            throw ValidationError("Give --key-file and --key-id, or --remove alone.")
        }
    }

    func run() async throws {
        try await key.run("offer key", of: bundleID) {
            try await $1.storeOfferKey($0, of: bundleID)
        } remove: {
            try await $0.removeOfferKey(of: bundleID)
        }
    }
}

struct AppNotificationsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "notifications", "Makes the address that Apple sends an app's notifications to.",
        notes: """
            The command prints the path of the address, which cannot be shown again. An earlier address ends. Enter \
            the path after https:// and the name of your server in App Store Connect, under App Information, App Store \
            Server Notifications.
            """,
        examples: "perennial app notifications com.example.app")

    @Argument(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var bundleID: BundleID

    @Flag(help: "Take no notifications any more.")
    var off = false

    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        guard !off else {
            try await flags.ledger { try await $0.apps.closeNotifications(of: bundleID) }
            return printLine("\(bundleID) takes no notifications any more.")
        }
        let token = try await flags.ledger { try await $0.apps.openNotifications(of: bundleID) }
        try printSecret("/v1/notifications/\(token.text)", ifLost: "Run this again, which makes another address.")
    }
}

struct AppClaimsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "claims", "Lists what Apple's signed texts about an app state and this version does not read.",
        notes: """
            Apple adds claims to its texts, and words to claims. What a version does not read stays in the stored texts, \
            decides nothing and is counted here: the kind of text with the place of the claim, and for a new word the \
            word. A claim that no text states for 30 days is forgotten. With a name the command prints one text that \
            states it.
            """,
        examples: """
            perennial app claims com.example.app
            perennial app claims com.example.app transaction.newClaim | perennial explain --signed -
            """)

    @Argument(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var bundleID: BundleID

    @Argument(help: ArgumentHelp("A claim of the list: print a text that states it.", valueName: "CLAIM"))
    var claim: String?

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        guard let claim else {
            let claims = try await flags.ledger { try await $0.intake.unreadClaims(of: bundleID) }
            return form.show(
                claims.listing([
                    ("claim", { .string($0.name) }), ("unreadable", { .bool($0.isUnreadable) }),
                    ("texts", { .integer($0.texts) }), ("first_seen_at", { .string($0.firstSeenAt.iso8601) }),
                    ("last_seen_at", { .string($0.lastSeenAt.iso8601) }),
                ]))
        }
        guard let example = try await flags.ledger({ try await $0.intake.unreadExample(of: claim, app: bundleID) })
        else {
            throw Failure("No text that states \(claim) is kept; the next one will be.")
        }
        printLine(example)
    }
}
