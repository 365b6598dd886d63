import ArgumentParser
import Dispatch

/// The start of the executable. It is not asynchronous, because Swift's runtime may open descriptors before an
/// asynchronous one begins.
@main
enum Start {
    static func main() {
        openStandardStreams()
        Task { await Perennial.runToEnd() }
        dispatchMain()
    }
}

/// The executable: one subcommand for each way to use Perennial.
struct Perennial: AsyncParsableCommand {
    /// The version that `perennial --version` prints. `CHANGELOG.md` says what is in it.
    static let version = "0.1.0"

    static let configuration = CommandConfiguration(
        commandName: "perennial",
        abstract: "Tracks App Store subscriptions and keeps the truth in PostgreSQL.",
        discussion: """
            Settings come from the environment, or from a file named by PERENNIAL_CONFIG; flags override both.

            A first run:
              export DATABASE_URL=postgresql:///perennial
              head -c 32 /dev/urandom | base64 > master-key
              export PERENNIAL_MASTER_KEY_FILE=master-key
              perennial migrate
              perennial app add --bundle-id com.example.app --shared-secret-file secret
              perennial all

            Exit status: 0 done, 1 failed, 2 a verifying command found a difference, 64 usage, 78 configuration.
            """,
        version: version,
        groupedSubcommands: [
            CommandGroup(
                name: "Run",
                subcommands: [
                    DoctorCommand.self, MigrateCommand.self, WorkerCommand.self, ServeCommand.self, AllCommand.self,
                ]),
            CommandGroup(name: "Set up", subcommands: [AppCommand.self, CatalogCommand.self, KeyCommand.self]),
            CommandGroup(
                name: "Customers",
                subcommands: [CustomerCommand.self, GrantCommand.self, RevokeGrantCommand.self, SupportCommand.self]),
            CommandGroup(name: "Events out", subcommands: [WebhookCommand.self]),
            CommandGroup(name: "Purchases", subcommands: [OrderCommand.self, DeliveryCommand.self]),
            CommandGroup(name: "Receipts", subcommands: [ReceiptCommand.self, ImportCommand.self]),
            CommandGroup(
                name: "Inspect",
                subcommands: [EntitlementsCommand.self, ExplainCommand.self, StatusCommand.self, ReportCommand.self]),
            CommandGroup(
                name: "Repair",
                subcommands: [VerifyCommand.self, RebuildCommand.self, PruneCommand.self, FeedCommand.self]),
            CommandGroup(name: "Development", subcommands: [SimulatorCommand.self]),
        ])

    static func runToEnd() async {
        do {
            let words = CommandLine.arguments.dropFirst()
            if words.first == "help" { try requireCommand(Array(words.dropFirst())) }
            var command = try await asyncParseAsRoot()
            if var asyncCommand = command as? any AsyncParsableCommand {
                try await asyncCommand.run()
            } else {
                try command.run()
            }
            ExitStatus.end(with: ExitCode.success)
        } catch {
            ExitStatus.end(with: error)
        }
    }

    /// Throws a usage error where these words name no command, for which ArgumentParser would show the help of another.
    static func requireCommand(_ words: [String]) throws {
        var command: any ParsableCommand.Type = Perennial.self
        for word in words where word != "help" && !word.hasPrefix("-") {
            let commands =
                command.configuration.subcommands + command.configuration.groupedSubcommands.flatMap(\.subcommands)
            guard let found = commands.first(where: { $0.configuration.commandName == word }) else {
                throw ValidationError("There is no command \(word); `perennial help` lists the commands.")
            }
            command = found
        }
    }
}

/// `Subscriptions` has a type of this name too.
typealias Flag = ArgumentParser.Flag

extension CommandConfiguration {
    /// Describes a command whose help ends with examples, one a line. A line that begins with a space continues the one
    /// before it.
    init(
        _ name: String, _ abstract: String, notes: String = "", examples: String,
        subcommands: [any ParsableCommand.Type] = []
    ) {
        let lines = examples.split(separator: "\n")
        let title = lines.count { !$0.hasPrefix(" ") } == 1 ? "Example:" : "Examples:"
        let section = ([title] + lines.map { "  \($0)" }).joined(separator: "\n")
        self.init(
            commandName: name, abstract: abstract, discussion: notes.isEmpty ? section : "\(notes)\n\n\(section)",
            subcommands: subcommands)
    }
}
