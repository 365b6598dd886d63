import ArgumentParser
import Ledger
import Subscriptions

/// `perennial app remove`
struct AppRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Removes an app, as if it was never registered.",
        discussion: """
            Its secrets and its offer key go, its address of notifications ends, and so do the API keys that are for it \
            alone. Events, figures and the catalog stay, and `perennial app add` registers the app again.

            The command refuses an app whose receipts are stored. With --erase-receipts it erases all its customers \
            first, as `perennial customer erase` does. That cannot be undone. After an interruption, repeat the command.

            Examples:
              perennial app remove com.example.typo --reason "misspelt"
              perennial app remove com.example.old --erase-receipts --yes --reason "no longer sold"
            """)

    @Argument(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var bundleID: BundleID

    @ArgumentParser.Flag(help: "Erase all customers of the app and their receipts first.")
    var eraseReceipts = false

    @ArgumentParser.Flag(help: "With --erase-receipts: do it; without this flag the command changes nothing.")
    var yes = false

    @OptionGroup var decision: DecisionFlags
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        let decided = try decision.decision
        guard yes || !eraseReceipts else {
            throw Failure("Nothing was erased: this cannot be undone; add --yes to erase all customers.")
        }
        try await withLedger(settings) { ledger in
            if eraseReceipts {
                try await ledger.apps.eraseCustomers(of: bundleID, deciding: decided) { count in
                    if count.isMultiple(of: 1_000) { printError("\(count) customers are erased.") }
                }
            }
            try await ledger.apps.remove(bundleID, deciding: decided)
        }
        printLine("\(bundleID) is removed.")
    }
}
