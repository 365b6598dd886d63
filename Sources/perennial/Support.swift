import AppStore
import ArgumentParser
import Foundation
import JSON
import Subscriptions
import Tracking

struct SupportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "support", "Asks Apple what it knows of a customer, extends subscriptions, and answers refund requests.",
        notes: """
            The calls go to the App Store Server API, with the app's server key (`perennial app server-key`). Each one is \
            recorded in the audit log before it is made. What changes something at Apple's has an identifier: the same \
            command again is the same request, and what was done is not done twice. Apple's texts are verified before \
            they are shown.
            """,
        examples:
            "perennial support extend --app com.example.app --original-transaction-id 1000000 --days 7 --reason outage",
        subcommands: [
            SupportTestCommand.self, SupportTransactionCommand.self, SupportHistoryCommand.self,
            SupportRefundsCommand.self, SupportExtendCommand.self, SupportExtendAllCommand.self,
            SupportExtendStatusCommand.self, SupportConsumptionCommand.self, SupportAccountTokenCommand.self,
        ])
}

/// What every support call needs: the app, the environment, a form of output and the settings.
struct SupportFlags: ParsableArguments {
    @Flag(help: "Ask Apple's sandbox instead of production.")
    var sandbox = false

    @OptionGroup var form: FormatFlag
    @OptionGroup var apple: AppleFlags
    @OptionGroup var flags: AppFlags

    var environment: StoreEnvironment { sandbox ? .sandbox : .production }

    func run<Result: Sendable>(_ body: (Tracker, App) async throws -> Result) async throws -> Result {
        try await flags.tracker(apple) { try await body($0, try await $0.ledger.apps.app(flags.app)) }
    }

    func showTransactions(_ question: SupportQuestion) async throws {
        let contents = try await run { try await $0.support(question, about: $1, in: environment) }
        guard case .transactions(let found, let goesOn) = contents else { throw Failure.otherAnswer }
        form.show(
            found.listing([
                ("transaction_id", { .string($0.row.transactionID.text) }),
                ("original_transaction_id", { .string($0.row.originalTransactionID.text) }),
                ("product_id", { .string($0.row.productID.text) }), ("purchased_at", { .optional($0.row.purchasedAt) }),
                ("expires_at", { .optional($0.row.expiresAt) }), ("revoked_at", { .optional($0.row.cancelledAt) }),
                ("revocation_reason", { .optional($0.revocationReason) }),
                ("app_account_token", { .optional($0.row.appAccountToken) }),
                ("price", { one in .optional(one.row.price?.milliunits.map { Milliunits($0).decimal }) }),
                ("currency", { .optional($0.row.price?.currency) }), ("quantity", { .integer(Int64($0.row.quantity)) }),
                ("ownership", { .optional($0.row.ownership?.raw) }), ("environment", { .optional($0.environment) }),
                ("signed_at", { .optional($0.row.asOf) }),
            ]))
        if goesOn { printError("Apple knows more transactions than these \(found.count).") }
    }

    func make(_ change: SupportChange, again: Bool = false) async throws {
        let made = try await run { try await $0.support(change, about: $1, in: environment, again: again) }
        show(made)
    }

    /// Shows a call, and in words what does not show in its row.
    func show(_ made: MadeSupportCall) {
        form.show(
            [made].listing([
                ("request_id", { .string($0.call.requestID) }), ("outcome", { .string($0.call.outcome.rawValue) }),
                ("repeated", { .bool($0.isRepeated) }), ("attempts", { .integer(Int64($0.call.attempts)) }),
                ("extended_until", { .optional($0.call.extendedUntil) }),
                ("answered_at", { .optional($0.call.answeredAt) }), ("check_due", { .bool($0.isChecked) }),
            ]))
        guard form.format == .table else { return }
        if made.isRepeated { printError("It was done before; nothing was sent now.") }
        if made.isChecked { printError("Apple is asked about the subscription at once.") }
    }
}

struct TransactionArgument: ParsableArguments {
    @Option(
        help: ArgumentHelp("A transaction id, such as the one in the customer's email from Apple.", valueName: "ID"))
    var transactionId: String
}

struct SupportTransactionCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "transaction", "Shows one transaction as Apple knows it now.",
        notes: "Nothing of it is stored. An unknown transaction may be one of the sandbox: try --sandbox.",
        examples: "perennial support transaction --app com.example.app --transaction-id 2000000123456789")

    @OptionGroup var transaction: TransactionArgument
    @OptionGroup var support: SupportFlags

    func run() async throws {
        try await support.showTransactions(.transaction(id: transaction.transactionId))
    }
}

struct SupportHistoryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "history", "Shows all transactions of the customer who has a transaction, those changed last at the end.",
        notes: "Nothing of it is stored. A long history ends after 1,000 transactions, which standard error says.",
        examples: "perennial support history --app com.example.app --transaction-id 2000000123456789 --format csv")

    @OptionGroup var transaction: TransactionArgument
    @OptionGroup var support: SupportFlags

    func run() async throws {
        try await support.showTransactions(.history(id: transaction.transactionId))
    }
}

struct SupportRefundsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "refunds", "Shows the refunded transactions of the customer who has a transaction, the oldest refund first.",
        notes: "Nothing of it is stored. No row means that Apple refunded nothing to this customer in this app.",
        examples: "perennial support refunds --app com.example.app --transaction-id 2000000123456789")

    @OptionGroup var transaction: TransactionArgument
    @OptionGroup var support: SupportFlags

    func run() async throws {
        try await support.showTransactions(.refunds(id: transaction.transactionId))
    }
}

extension Failure {
    /// An answer to another question than the one asked.
    static let otherAnswer = Failure("Apple answered to another question; please report this as a bug.")
}

struct SupportTestCommand: AsyncParsableCommand {
    /// How long the command waits for Apple's first attempt, in seconds.
    private static let waitSeconds = 30.0
    /// The rest before Apple is asked about the attempt, in seconds.
    private static let restSeconds = 2.0

    static let configuration = CommandConfiguration(
        "test-notification", "Has Apple send a test notification, and says whether it arrived.",
        notes: """
            It shows Apple's attempts to deliver the notification, and when Perennial stored it. It waits up to 30 seconds \
            for the first attempt; --token asks about an earlier one. Exit status 1 means that the notification did not \
            arrive. The address is the one in App Store Connect (`perennial app notifications`).
            """,
        examples: """
            perennial support test-notification --app com.example.app
            perennial support test-notification --app com.example.app --sandbox --token ce3af791-365e-4c60-841b_1
            """)

    @Option(help: ArgumentHelp("Ask what became of an earlier test notification.", valueName: "T"))
    var token: String?

    @OptionGroup var support: SupportFlags

    func run() async throws {
        let (sent, test, received) = try await support.run { tracker, app in
            let sent = try await sentToken(by: tracker, about: app)
            let test = try await fate(of: sent, by: tracker, about: app)
            return (sent, test, try await tracker.ledger.support.received(test?.uuid ?? "", for: app))
        }
        support.form.show(Listing(sent, test, received))
        guard received != nil else {
            throw Failure(
                "Perennial has not received the notification; check the address in App Store Connect, and that "
                    + "`perennial serve` can be reached. `--token \(sent)` asks again.")
        }
    }

    private func sentToken(by tracker: Tracker, about app: App) async throws -> String {
        if let token { return token }
        let answer = try await tracker.support(.testNotification, about: app, in: support.environment)
        guard case .test(let token) = answer else { throw Failure.otherAnswer }
        return token
    }

    /// Asks what became of a notification until there is an attempt; nil where Apple knows nothing of it in time.
    private func fate(of sent: String, by tracker: Tracker, about app: App) async throws -> TestNotification? {
        let end = ContinuousClock.now + .seconds(Self.waitSeconds)
        var last: TestNotification?
        while true {
            do {
                let answer = try await tracker.support(.testStatus(token: sent), about: app, in: support.environment)
                guard case .testStatus(let test) = answer else { throw Failure.otherAnswer }
                last = test
                if !test.attempts.isEmpty { return test }
            } catch let failure as SupportFailure where token == nil && failure.isRefusal && ContinuousClock.now < end {
                // Apple knows a test notification only a moment after it took the request.
            }
            guard ContinuousClock.now < end else { return last }
            try await Task.sleep(for: .seconds(Self.restSeconds))
        }
    }
}

extension Listing {
    /// A test notification: a row for each attempt to deliver it, or one without an attempt.
    fileprivate init(_ token: String, _ test: TestNotification?, _ received: Instant?) {
        self.init(columns: ["token", "notification_uuid", "attempted_at", "result", "received_at"])
        let attempts =
            test?.attempts.map { (JSONValue.optional(Instant(milliseconds: $0.at)), JSONValue.string($0.result)) } ?? []
        rows = (attempts.isEmpty ? [(.null, .null)] : attempts).map { at, result in
            [.string(token), .optional(test?.uuid), at, result, .optional(received)]
        }
    }
}

struct SupportAccountTokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "account-token",
        "Sets the account token of a subscription or purchase at Apple's, for one that was bought without it.",
        notes: """
            The token is a UUID, as your app passes it to Apple with a purchase. It is in Apple's answers from then on, and \
            in those about renewals. The same value again is the same request. Workers ask Apple about the purchase at \
            once; an owner that is known does not change by it.
            """,
        examples: """
            perennial support account-token --app com.example.app --original-transaction-id 1000000 \\
              --token 3f2504e0-4f89-41d3-9a0c-0305e82c3301
            """)

    @Option(help: ArgumentHelp("The id of the first transaction.", valueName: "ID"))
    var originalTransactionId: String

    @Option(help: ArgumentHelp("The token, a UUID.", valueName: "UUID"))
    var token: String

    @OptionGroup var support: SupportFlags

    func validate() throws {
        guard UUID(uuidString: token) != nil else { throw ValidationError("--token is a UUID.") }
    }

    func run() async throws {
        try await support.make(.accountToken(originalTransactionID: originalTransactionId, token: token.lowercased()))
    }
}
