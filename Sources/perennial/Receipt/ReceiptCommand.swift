import ArgumentParser

/// `perennial receipt`
struct ReceiptCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "receipt",
        abstract: "Stores, checks and shows single receipts.",
        discussion: """
            Example:
              perennial receipt add --app com.example.app --customer c1 receipt.txt
            """,
        subcommands: [
            ReceiptAddCommand.self, ReceiptCheckCommand.self, ReceiptListCommand.self, ReceiptShowCommand.self,
        ])
}
