import ArgumentParser
import Foundation
import Ledger
import Subscriptions
import Tracking

/// `perennial receipt add`
struct ReceiptAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Stores one receipt and verifies it now.",
        discussion: """
            The file holds base64 as the app sent it, or the receipt file of a device. An app without receipts sends a \
            signed transaction of StoreKit 2 or the id of a transaction instead; both need `perennial app server-key`. \
            Exits 0 when Apple vouched for it; otherwise 1, and the receipt stays stored and is asked about again.

            Examples:
              perennial receipt add --app com.example.app --customer c1 receipt.txt
              perennial receipt add --app com.example.app --customer c1 --transaction-id 2000000123456789
            """)

    /// The most bytes of a signed transaction's file.
    private static let signedBytesMax = 1 << 18

    @Option(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var app: BundleID

    @Option(help: ArgumentHelp("Your own id of the customer.", valueName: "C"))
    var customer: String

    @Argument(help: ArgumentHelp("The receipt's file, or - for standard input.", valueName: "FILE|-"))
    var file: String?

    @Option(help: ArgumentHelp("The file of a signed transaction, or - for standard input.", valueName: "FILE|-"))
    var signedTransaction: String?

    @Option(help: ArgumentHelp("The id of a transaction.", valueName: "ID"))
    var transactionId: String?

    @OptionGroup var apple: AppleFlags
    @OptionGroup var flags: SettingsFlags

    func validate() throws {
        guard [file, signedTransaction, transactionId].compactMap(\.self).count == 1 else {
            throw ValidationError(
                "Give the receipt's file, --signed-transaction or --transaction-id: exactly one of them.")
        }
    }

    func run() async throws {
        let settings = try flags.settings(needing: [.database, .masterKey], apple.values)
        let subject = try subject
        let answer = try await withLedger(settings) { ledger in
            try await withTracker(settings, ledger: ledger) { tracker in
                try await tracker.submit(Submission(bundleID: app, customer: customer, subject: subject))
            }
        }
        switch answer {
        case .settled(let settled, customer: _):
            printLine(settled.text)
            if let failure = settled.failure { throw failure }
        case .pending(let receipt, let reason, _):
            throw Failure("Receipt \(receipt) is stored but not verified yet: \(reason)")
        }
    }

    private var subject: Submission.Subject {
        get throws {
            if let transactionId { return .transactionID(transactionId) }
            if let signedTransaction {
                let text = String(
                    decoding: try InputFile(signedTransaction).contents(bytesMax: Self.signedBytesMax), as: UTF8.self)
                return .signedTransaction(text.trimmingCharacters(in: .whitespacesAndNewlines))
            }
            return .receipt(try ReceiptFile(file: InputFile(file ?? "-")).receipt())
        }
    }
}
