import ArgumentParser
import JSON
import Subscriptions
import Tracking

struct AppCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "app", "Registers apps and changes their settings.",
        notes: "Shared secrets are read from files, sealed with the master key and never printed.",
        examples: "perennial app add --bundle-id com.example.app --shared-secret-file secret",
        subcommands: [
            AppAddCommand.self, AppListCommand.self, AppShowCommand.self, AppSetCommand.self,
            AppRotateSecretCommand.self, AppServerKeyCommand.self, AppOfferKeyCommand.self,
            AppNotificationsCommand.self, AppClaimsCommand.self, AppRemoveCommand.self,
        ])
}

enum SandboxChoice: String, ExpressibleByArgument, CaseIterable { case allow, refuse }

struct BudgetFlags: ParsableArguments {
    /// The lowest rate except 0, in calls per second: one call in about a quarter of an hour.
    static let rateMin = 0.001
    /// The highest rate, in calls per second, and the highest burst, in calls. A rate of 0 means no limit.
    static let callsMax = 100_000.0

    @Option(
        rateMin...callsMax, orZero: true,
        help: ArgumentHelp("Calls a second to Apple, 50 unless set; 0 is unlimited.", valueName: "N"))
    var rate: Double?

    @Option(
        1...callsMax,
        help: ArgumentHelp("Calls at once after a pause; as many as a second's unless set.", valueName: "N"))
    var burst: Double?
}

struct AppAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "add", "Registers an app.",
        notes: """
            The shared secret is the app-specific one of App Store Connect. A trailing newline in its file is ignored.
            """,
        examples: "pass show appstore | perennial app add --bundle-id com.example.app --shared-secret-file -")

    @Option(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var bundleId: BundleID

    @Option(help: ArgumentHelp("A name for people.", valueName: "N"))
    var name: String?

    @Option(help: ArgumentHelp("A file with the app's shared secret, or - for standard input.", valueName: "F|-"))
    var sharedSecretFile: InputFile?

    @Option(help: ArgumentHelp("A file with the secret before the last rotation.", valueName: "F"))
    var previousSecretFile: InputFile?

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
        let (secret, previous) = (try sharedSecretFile?.secret(), try previousSecretFile?.secret())
        try await flags.ledger(sealing: sealsSecret) {
            try await $0.apps.add(
                bundleId, name: name, secret: secret, previousSecret: previous, sandboxAllowed: sandbox == .allow,
                callsPerSecond: budget.rate ?? 50, burst: budget.burst)
        }
        printLine("Registered \(bundleId)\(sharedSecretFile == nil ? " without a shared secret" : "").")
    }
}

struct AppListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "list", "Lists the registered apps.",
        examples: "perennial app list --format json")

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        form.show(Listing(apps: try await flags.ledger { try await $0.apps.all() }))
    }
}

struct AppShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "show", "Shows one app's settings.",
        examples: "perennial app show com.example.app")

    @Argument(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var bundleID: BundleID

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        form.show(Listing(apps: [try await flags.ledger { try await $0.apps.app(bundleID) }]))
    }
}

extension Listing {
    init(apps: [App]) {
        self = apps.listing([
            ("bundle_id", { .string($0.bundleID.text) }), ("name", { .string($0.name) }),
            ("secret", { .bool($0.hasSecret) }), ("sandbox", { .bool($0.sandboxAllowed) }),
            ("ownership", { .string($0.ownershipPolicy.rawValue) }), ("rate", { .number($0.callsPerSecond) }),
            ("burst", { .number($0.burst) }), ("leeway_s", { .integer($0.leeway.milliseconds / 1_000) }),
            ("sandbox_leeway_s", { .integer($0.sandboxLeeway.milliseconds / 1_000) }),
            ("outage_allowance_s", { .integer($0.outageAllowance.milliseconds / 1_000) }),
            ("paused_until", { .optional($0.pauses.first?.until) }),
            ("pause_reason", { .optional($0.pauses.first?.reason) }), ("sweep", { .string($0.sweep.rawValue) }),
            ("notifications", { .bool($0.takesNotifications) }),
            ("pre_check_s", { .integer($0.preCheckSpread.milliseconds / 1_000) }),
            ("offer_key_id", { .optional($0.offerKey?.id) }), ("offer_issuer_id", { .optional($0.offerKey?.issuer) }),
            ("verifier", { .string($0.verifier.rawValue) }), ("server_key_id", { .optional($0.serverKey?.id) }),
            ("server_issuer_id", { .optional($0.serverKey?.issuer) }),
            ("apple_app_id", { app in app.appleAppID.map { .integer($0) } ?? .null }),
        ])
    }
}

extension OwnershipPolicy: ExpressibleByArgument {}
extension SweepFrequency: ExpressibleByArgument {}
extension Verifier: ExpressibleByArgument {}

struct AppSetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "set", "Changes an app's settings; what is not given stays.",
        examples: """
            perennial app set com.example.app --rate 20 --ownership keep
            perennial app set com.example.app --verifier server_api
            """)

    @Argument(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var bundleID: BundleID

    @Option(help: ArgumentHelp("A name for people.", valueName: "N"))
    var name: String?

    @Option(help: "Whether purchases of Apple's sandbox count.")
    var sandbox: SandboxChoice?

    @Option(help: "What happens when another customer sends an owned subscription.")
    var ownership: OwnershipPolicy?

    @Option(help: "How often refunds are looked for: relaxed is half as often, for an app with notifications.")
    var sweep: SweepFrequency?

    @Option(
        0...720,
        help: ArgumentHelp(
            "Minutes over which checks shortly before an end are spread, 10 unless set; more when many end together.",
            valueName: "N"))
    var preCheckMinutes: Int?

    @Option(
        help:
            "Who is asked about receipts; both compares the channels. server_api and both need a key: `app server-key`."
    )
    var verifier: Verifier?

    @Flag(help: "Leave both although the comparison is not complete; with --reason.")
    var force = false

    @Option(help: ArgumentHelp("With --force: why, for the audit log.", valueName: "TEXT"))
    var reason: String?

    @Option(
        1...Int64.max,
        help: ArgumentHelp("Apple's number of the app, which signed texts of production have to name.", valueName: "N"))
    var appleAppId: Int64?

    @OptionGroup var tolerance: ToleranceFlags
    @OptionGroup var budget: BudgetFlags
    @OptionGroup var flags: SettingsFlags

    func validate() throws {
        let isChanged = [
            name != nil, sandbox != nil, ownership != nil, sweep != nil, preCheckMinutes != nil, verifier != nil,
            appleAppId != nil, tolerance.leewayMinutes != nil, tolerance.sandboxLeewayMinutes != nil,
            tolerance.outageDays != nil, budget.rate != nil, budget.burst != nil,
        ]
        guard isChanged.contains(true) else { throw ValidationError("Give at least one setting to change.") }
        guard force == (reason != nil), reason?.isEmpty != true, !force || verifier != nil else {
            throw ValidationError("--force and --reason TEXT go together, with --verifier.")
        }
    }

    func run() async throws {
        var change = AppChange()
        change.name = name
        change.sandboxAllowed = sandbox.map { $0 == .allow }
        change.ownershipPolicy = ownership
        change.sweep = sweep
        change.callsPerSecond = budget.rate
        change.burst = budget.burst
        change.preCheckSpread = preCheckMinutes.map { .minutes(Int64($0)) }
        change.leeway = tolerance.leewayMinutes.map { .minutes(Int64($0)) }
        change.sandboxLeeway = tolerance.sandboxLeewayMinutes.map { .minutes(Int64($0)) }
        change.outageAllowance = tolerance.outageDays.map { .days(Int64($0)) }
        change.verifier = verifier
        change.forcedBecause = reason
        change.appleAppID = appleAppId
        try await flags.ledger { [change] in try await $0.apps.change(bundleID, change) }
        printLine("Changed \(bundleID).")
    }
}

/// The tolerances of an app for late answers. Each applies to a subscription from its next answer on.
struct ToleranceFlags: ParsableArguments {
    /// The longest leeway, in minutes: a week. A subscription without a renewal for longer than that is not paid.
    static let leewayMinutesMax = 10_080
    /// The longest outage allowance, in days: a year.
    static let outageDaysMax = 365

    @Option(
        0...leewayMinutesMax,
        help: ArgumentHelp(
            "Minutes that an expected renewal may be late before access ends, 120 unless set.", valueName: "N"))
    var leewayMinutes: Int?

    @Option(0...leewayMinutesMax, help: ArgumentHelp("The same in Apple's sandbox, 5 unless set.", valueName: "N"))
    var sandboxLeewayMinutes: Int?

    @Option(
        0...outageDaysMax,
        help: ArgumentHelp(
            "Days that access goes on while Apple cannot be asked about an expected renewal, 30 unless set.",
            valueName: "N"))
    var outageDays: Int?
}

struct AppRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "remove", "Removes an app, as if it was never registered.",
        notes: """
            Its shared secrets with what Apple said of them, its server key and its offer key go. So do the webhooks of \
            this app alone, with what they have yet to send, and the counts of refused bundle ids and of claims that \
            are not read. Its address of notifications ends, and so do the API keys that are for it alone. Events, \
            figures, the catalog and its other settings stay. `perennial app add` registers the app again, which then \
            asks verifyReceipt.

            The command refuses an app whose receipts are stored. With --erase-receipts it erases all its customers \
            first, as `perennial customer erase` does. That cannot be undone. After an interruption, repeat the command.
            """,
        examples: """
            perennial app remove com.example.typo --reason "misspelt"
            perennial app remove com.example.old --erase-receipts --yes --reason "no longer sold"
            """)

    @Argument(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var bundleID: BundleID

    @Flag(help: "Erase all customers of the app and their receipts first.")
    var eraseReceipts = false

    @Flag(help: "With --erase-receipts: do it; without this flag the command changes nothing.")
    var yes = false

    @OptionGroup var decision: DecisionFlags
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let decided = try decision.decision
        guard yes || !eraseReceipts else {
            throw Failure(
                "Nothing was erased: this cannot be undone; add --yes to erase all customers of \(bundleID) and their receipts."
            )
        }
        try await flags.ledger { ledger in
            if eraseReceipts {
                let erased = try await ledger.apps.eraseCustomers(of: bundleID, deciding: decided) { count in
                    if count.isMultiple(of: 1_000) { printError("\(count) customers are erased.") }
                }
                printLine("Customers erased, with their receipts: \(erased).")
            }
            try await ledger.apps.remove(bundleID, deciding: decided)
        }
        printLine("\(bundleID) is removed, with its secrets, keys and webhooks; its events and its catalog stay.")
    }
}
