import ArgumentParser
import Ledger
import Subscriptions
import Tracking

/// `perennial receipt add`
struct ReceiptAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Stores one receipt and verifies it now.",
        discussion: """
            The file holds base64 as the app sent it, or the receipt file of a device. Exits 0 when Apple vouched for \
            it; otherwise 1, and the receipt stays stored and is asked about again.

            Example:
              perennial receipt add --app com.example.app --customer c1 receipt.txt
            """)

    @Option(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var app: BundleID

    @Option(help: ArgumentHelp("Your own id of the customer.", valueName: "C"))
    var customer: String

    @Argument(help: ArgumentHelp("The receipt's file, or - for standard input.", valueName: "FILE|-"))
    var file: String

    @OptionGroup var apple: AppleFlags
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database, .masterKey], apple.values)
        let receipt = try ReceiptFile(file: InputFile(file)).receipt()
        let answer = try await withLedger(settings) { ledger in
            try await withTracker(settings, ledger: ledger) { tracker in
                try await tracker.submit(Submission(bundleID: app, customer: customer, receipt: receipt))
            }
        }
        switch answer {
        case .settled(let settled, customer: _):
            printLine(settled.text)
            if let failure = settled.failure { throw failure }
        case .pending(let receipt, let reason):
            throw Failure("Receipt \(receipt) is stored but not verified yet: \(reason)")
        }
    }
}
