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
            AppRotateSecretCommand.self, AppNotificationsCommand.self,
        ])
}

/// Whether purchases of Apple's sandbox are accepted.
enum SandboxChoice: String, ExpressibleByArgument, CaseIterable {
    case allow
    case refuse
}

/// The budget of calls to Apple.
struct BudgetFlags: ParsableArguments {
    @Option(help: ArgumentHelp("Calls a second to Apple, 50 unless set; 0 is unlimited.", valueName: "N"))
    var rate: Double?

    @Option(help: ArgumentHelp("Calls at once after a pause; as many as a second's unless set.", valueName: "N"))
    var burst: Double?

    /// Whether anything is said.
    var isGiven: Bool { rate != nil || burst != nil }

    func validate() throws {
        if let rate, !(rate.isFinite && rate >= 0) { throw ValidationError("--rate is 0 or more calls a second.") }
        if let burst, !(burst.isFinite && burst >= 1) { throw ValidationError("--burst is at least 1 call.") }
    }
}
