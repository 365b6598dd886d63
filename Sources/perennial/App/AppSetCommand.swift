import ArgumentParser
import Ledger
import Subscriptions

extension OwnershipPolicy: ExpressibleByArgument {}
extension SweepFrequency: ExpressibleByArgument {}
extension Verifier: ExpressibleByArgument {}

/// `perennial app set`
struct AppSetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Changes an app's settings; what is not given stays.",
        discussion: """
            Example:
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
        help: ArgumentHelp(
            "Minutes over which checks shortly before an end are spread, 10 unless set; more when many end together.",
            valueName: "N"))
    var preCheckMinutes: Int?

    @Option(
        help:
            "Who is asked about receipts; both compares the channels. server_api and both need a key: `app server-key`."
    )
    var verifier: Verifier?

    // `Subscriptions` has a type `Flag` too.
    @ArgumentParser.Flag(help: "Leave both although the comparison is not complete; with --reason.")
    var force = false

    @Option(help: ArgumentHelp("With --force: why, for the audit log.", valueName: "TEXT"))
    var reason: String?

    @Option(
        help: ArgumentHelp("Apple's number of the app, which signed texts of production have to name.", valueName: "N"))
    var appleAppId: Int64?

    @OptionGroup var tolerance: ToleranceFlags
    @OptionGroup var budget: BudgetFlags
    @OptionGroup var flags: SettingsFlags

    func validate() throws {
        let isChanged = [
            name != nil, sandbox != nil, ownership != nil, sweep != nil, budget.isGiven, preCheckMinutes != nil,
            tolerance.isGiven, verifier != nil, appleAppId != nil,
        ]
        guard isChanged.contains(true) else { throw ValidationError("Give at least one setting to change.") }
        guard force == (reason != nil), reason?.isEmpty != true, !force || verifier != nil else {
            throw ValidationError("--force and --reason TEXT go together, with --verifier.")
        }
        guard appleAppId.map({ $0 > 0 }) ?? true else { throw ValidationError("--apple-app-id is a number from 1 on.") }
        guard preCheckMinutes.map((0...720).contains) ?? true else {
            throw ValidationError("--pre-check-minutes is a number from 0 to 720.")
        }
    }

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
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
        let final = change
        try await withLedger(settings) { try await $0.apps.change(bundleID, final) }
        printLine("Changed \(bundleID).")
    }
}
