import ArgumentParser
import Ledger
import Subscriptions
import Tracking

/// `perennial receipt check`
struct ReceiptCheckCommand: AsyncParsableCommand {
    /// The most receipts of one customer that are checked.
    static let receiptsMax = 100

    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Verifies a stored receipt now, or a customer's receipts, and prints what changed.",
        discussion: """
            Examples:
              perennial receipt check --receipt 17
              perennial receipt check --app com.example.app --customer c1
            """)

    @Option(help: ArgumentHelp("The receipt's number; see `perennial receipt list`.", valueName: "ID"))
    var receipt: Int64?

    @Option(help: ArgumentHelp("Your own id of the customer.", valueName: "C"))
    var customer: String?

    @Option(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var app: BundleID?

    @OptionGroup var apple: AppleFlags
    @OptionGroup var flags: SettingsFlags

    func validate() throws {
        switch (receipt, customer, app) {
        case (.some, nil, nil), (nil, .some, .some): return
        case (nil, nil, nil), (nil, nil, .some), (nil, .some, nil), (.some, .some, _), (.some, nil, .some):
            throw ValidationError("Give either --receipt, or --customer with --app.")
        }
    }

    func run() async throws {
        let settings = try flags.settings(needing: [.database, .masterKey], apple.values)
        let failures = try await withLedger(settings) { ledger in
            let receipts = try await receipts(in: ledger)
            return try await withTracker(settings, ledger: ledger) { tracker in
                var failures: [Failure] = []
                for receipt in receipts {
                    let settled = try await tracker.check(receipt)
                    try await ledger.audit(.receiptChecked, app: app, customer: customer, receipt: receipt)
                    printLine(settled.text)
                    if let failure = settled.failure { failures.append(failure) }
                }
                return failures
            }
        }
        if !failures.isEmpty { throw Failure(failures.map(\.description).joined(separator: " ")) }
    }

    private func receipts(in ledger: SubscriptionLedger) async throws -> [ReceiptID] {
        if let receipt { return [ReceiptID(receipt)] }
        guard let app, let customer else { return [] }
        _ = try await ledger.apps.app(app)
        let stored = try await ledger.customers.receipts(app: app, customer: customer, limit: Self.receiptsMax)
        guard !stored.isEmpty else {
            throw Failure("Customer \(customer) of \(app) has no receipts; see `perennial receipt list`.")
        }
        return stored.map(\.id).sorted()
    }
}
