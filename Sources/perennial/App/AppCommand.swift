import ArgumentParser

/// `perennial app`
struct AppCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "app",
        abstract: "Registers apps and changes their settings.",
        discussion: """
            Shared secrets are read from files, sealed with the master key and never printed.

            Example:
              perennial app add --bundle-id com.example.app --shared-secret-file secret
            """,
        subcommands: [
            AppAddCommand.self, AppListCommand.self, AppShowCommand.self, AppSetCommand.self,
            AppRotateSecretCommand.self, AppServerKeyCommand.self, AppOfferKeyCommand.self,
            AppNotificationsCommand.self, AppClaimsCommand.self, AppRemoveCommand.self,
        ])
}

/// Whether purchases of Apple's sandbox are accepted.
enum SandboxChoice: String, ExpressibleByArgument, CaseIterable {
    case allow
    case refuse
}

/// The budget of calls to Apple.
struct BudgetFlags: ParsableArguments {
    /// The lowest rate except 0, in calls per second: one call in about a quarter of an hour.
    static let rateMin = 0.001
    /// The highest rate, in calls per second, and the highest burst, in calls. A rate of 0 means no limit.
    static let callsMax = 100_000.0

    @Option(help: ArgumentHelp("Calls a second to Apple, 50 unless set; 0 is unlimited.", valueName: "N"))
    var rate: Double?

    @Option(help: ArgumentHelp("Calls at once after a pause; as many as a second's unless set.", valueName: "N"))
    var burst: Double?

    /// Whether any flag is given.
    var isGiven: Bool { rate != nil || burst != nil }

    func validate() throws {
        guard rate.map({ $0 == 0 || (Self.rateMin...Self.callsMax).contains($0) }) ?? true else {
            throw ValidationError(
                "--rate is 0, for unlimited, or a number of calls a second from \(Self.rateMin) to \(Int(Self.callsMax))."
            )
        }
        guard burst.map((1...Self.callsMax).contains) ?? true else {
            throw ValidationError("--burst is a number of calls from 1 to \(Int(Self.callsMax)).")
        }
    }
}
