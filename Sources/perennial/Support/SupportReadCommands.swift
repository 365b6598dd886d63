import AppStore
import ArgumentParser
import Ledger
import Server
import Subscriptions
import Tracking

/// The transaction that a reading call is about.
struct TransactionArgument: ParsableArguments {
    @Option(
        help: ArgumentHelp("A transaction id, such as the one in the customer's email from Apple.", valueName: "ID"))
    var transactionId: String
}

/// `perennial support transaction`
struct SupportTransactionCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "transaction",
        abstract: "Shows one transaction as Apple knows it now.",
        discussion: """
            Nothing of it is stored. An unknown transaction may be one of the sandbox: try --sandbox.

            Example:
              perennial support transaction --app com.example.app --transaction-id 2000000123456789
            """)

    @OptionGroup var transaction: TransactionArgument
    @OptionGroup var support: SupportFlags

    func run() async throws {
        try support.show(transactions: try await support.ask(.transaction(id: transaction.transactionId)))
    }
}

/// `perennial support history`
struct SupportHistoryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: "Shows all transactions of the customer who has a transaction, those changed last at the end.",
        discussion: """
            Nothing of it is stored. A long history ends after 1,000 transactions, which standard error says.

            Example:
              perennial support history --app com.example.app --transaction-id 2000000123456789 --format csv
            """)

    @OptionGroup var transaction: TransactionArgument
    @OptionGroup var support: SupportFlags

    func run() async throws {
        try support.show(transactions: try await support.ask(.history(id: transaction.transactionId)))
    }
}

/// `perennial support refunds`
struct SupportRefundsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "refunds",
        abstract: "Shows the refunded transactions of the customer who has a transaction, the oldest refund first.",
        discussion: """
            Nothing of it is stored. No row means that Apple refunded nothing to this customer in this app.

            Example:
              perennial support refunds --app com.example.app --transaction-id 2000000123456789
            """)

    @OptionGroup var transaction: TransactionArgument
    @OptionGroup var support: SupportFlags

    func run() async throws {
        try support.show(transactions: try await support.ask(.refunds(id: transaction.transactionId)))
    }
}

extension SupportFlags {
    /// Shows the transactions that Apple answered with.
    fileprivate func show(transactions contents: SupportContents) throws {
        guard case .transactions(let found, let goesOn) = contents else { throw Failure.otherAnswer }
        form.show(Listing(found))
        if goesOn { printError("Apple knows more transactions than these \(found.count).") }
    }
}

extension Failure {
    /// An answer to another question than the one asked.
    static let otherAnswer = Failure("Apple answered to another question; please report this as a bug.")
}

extension Listing {
    /// Transactions as Apple states them.
    init(_ transactions: [SignedTransaction]) {
        self.init(columns: [
            "transaction_id", "original_transaction_id", "product_id", "purchased_at", "expires_at", "revoked_at",
            "revocation_reason", "app_account_token", "price", "currency", "quantity", "ownership", "environment",
            "signed_at",
        ])
        rows = transactions.map { one in
            [
                .string(one.transactionID), .string(one.originalTransactionID), .string(one.productID),
                .instant(one.purchasedAt), .instant(one.expiresAt), .instant(one.revokedAt),
                .optional(one.revocationReason), .optional(one.appAccountToken),
                .optional(one.price.map { Self.amount($0) }), .optional(one.currency),
                .integer(Int64(one.quantity)), .optional(one.ownershipType), .optional(one.environment),
                .instant(one.signedAt),
            ]
        }
    }

    private static func amount(_ milliunits: Int64) -> String { Milliunits(milliunits).decimal }
}

extension JSONValue {
    /// An instant of Apple's, in milliseconds since 1970; null for none.
    static func instant(_ milliseconds: Int64?) -> JSONValue {
        .optional(milliseconds.map { Instant(milliseconds: $0) })
    }
}
