import AppStore
import ArgumentParser
import Ledger
import Server
import Subscriptions
import Tracking

/// `perennial support`
struct SupportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "support",
        abstract: "Asks Apple what it knows of a customer, extends subscriptions, and answers refund requests.",
        discussion: """
            The calls go to the App Store Server API, with the app's server key (`perennial app server-key`). Each one is \
            recorded in the audit log before it is made. What changes something at Apple's has an identifier: the same \
            command again is the same request, and what was done is not done twice. Apple's texts are verified before \
            they are shown.

            Example:
              perennial support extend --app com.example.app --original-transaction-id 1000000 --days 7 --reason outage
            """,
        subcommands: [
            SupportTestCommand.self, SupportTransactionCommand.self, SupportHistoryCommand.self,
            SupportRefundsCommand.self, SupportExtendCommand.self, SupportExtendAllCommand.self,
            SupportExtendStatusCommand.self, SupportConsumptionCommand.self, SupportAccountTokenCommand.self,
        ])
}

/// What every support call needs: the app, the environment, a form of output and the settings.
struct SupportFlags: ParsableArguments {
    @Option(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var app: BundleID

    @ArgumentParser.Flag(help: "Ask Apple's sandbox instead of production.")
    var sandbox = false

    @OptionGroup var form: FormatFlag
    @OptionGroup var apple: AppleFlags
    @OptionGroup var flags: SettingsFlags

    /// Where Apple is asked.
    var environment: StoreEnvironment { sandbox ? .sandbox : .production }

    /// Runs `body` with a tracker and the app.
    func run<Result: Sendable>(_ body: (Tracker, App) async throws -> Result) async throws -> Result {
        let settings = try flags.settings(needing: [.database, .masterKey], apple.values)
        return try await withLedger(settings) { ledger in
            let app = try await ledger.apps.app(app)
            return try await withTracker(settings, ledger: ledger) { try await body($0, app) }
        }
    }

    /// Asks a question and returns what Apple answered.
    func ask(_ question: SupportQuestion) async throws -> SupportContents {
        try await run { try await $0.support(question, about: $1, in: environment) }
    }

    /// Makes a change and shows what came of it.
    func make(_ change: SupportChange, again: Bool = false) async throws {
        let made = try await run { try await $0.support(change, about: $1, in: environment, again: again) }
        show(made)
    }

    /// Shows a call, and in words what does not show in its row.
    func show(_ made: MadeSupportCall) {
        form.show(Listing(made))
        guard form.format == .table else { return }
        if made.isRepeated { printError("It was done before; nothing was sent now.") }
        if made.isChecked { printError("Apple is asked about the subscription at once.") }
    }
}

extension Listing {
    /// A support call that changed something.
    init(_ made: MadeSupportCall) {
        self.init(columns: [
            "request_id", "outcome", "repeated", "attempts", "extended_until", "answered_at", "check_due",
        ])
        let call = made.call
        rows = [
            [
                .string(call.requestID), .string(call.outcome.rawValue), .bool(made.isRepeated),
                .integer(Int64(call.attempts)), .optional(call.extendedUntil), .optional(call.answeredAt),
                .bool(made.isChecked),
            ]
        ]
    }
}
