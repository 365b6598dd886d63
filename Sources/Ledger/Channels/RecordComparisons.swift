import Postgres
import SQL
package import Subscriptions

/// A receipt about which both channels were asked.
package struct ComparedReceipt: Sendable {
    /// The receipt.
    package let receiptID: ReceiptID
    /// Its app, by its key.
    package let appID: Int32
    /// The environment that answered.
    package let environment: StoreEnvironment
    /// What both state; nil where one of them gave no whole answer.
    package let comparison: ChannelComparison?

    /// Creates it from its parts.
    package init(receiptID: ReceiptID, appID: Int32, environment: StoreEnvironment, comparison: ChannelComparison?) {
        (self.receiptID, self.appID, self.environment) = (receiptID, appID, environment)
        self.comparison = comparison
    }
}

extension LedgerSettlements {
    /// How long a difference may be a delay between the channels, in seconds.
    package static let channelDelaySecondsMax = 3_600.0
    /// How soon both channels are asked again after a difference, in seconds; later the longer they differ.
    static let channelRepeatSeconds = 60.0

    /// Records what both channels said about receipts. A difference that is not seen again has ended; one that may be a
    /// delay brings the next check forward.
    package func record(_ receipts: [ComparedReceipt]) async throws {
        guard !receipts.isEmpty else { return }
        let found = FoundDifferences(receipts)
        let speedup = Double(ledger.speedup)
        try await ledger.retryingCollisions {
            try await ledger.database.transaction { transaction in
                _ = try transaction.query(Queries.noteComparisons, [found.receipts] + found.compared)
                _ = try transaction.query(Queries.endDifferences, found.compared + found.keys)
                guard found.hasDifferences else { return }
                _ = try transaction.query(
                    Queries.storeDifferences,
                    found.keys + found.values + [.float8(Self.channelDelaySecondsMax / speedup)])
                _ = try transaction.query(
                    Queries.askAgain, [found.receipts, .float8(Self.channelRepeatSeconds / speedup)])
            }
        }
    }
}

/// Compared receipts as the parameters of statements.
private struct FoundDifferences {
    let receipts: Parameter
    /// Apps, environments and original transactions of what was compared.
    let compared: [Parameter]
    /// Apps, environments, original transactions, transactions and facts that differ.
    let keys: [Parameter]
    /// What verifyReceipt states, what the Server API states, and explanations.
    let values: [Parameter]
    let hasDifferences: Bool

    init(_ all: [ComparedReceipt]) {
        receipts = .int8s(all.map(\.receiptID.number).sorted())
        let items = all.flatMap { receipt in (receipt.comparison?.compared ?? []).map { (receipt, $0) } }
        compared = [
            .int4s(items.map(\.0.appID)), .texts(items.map(\.0.environment.rawValue)), .texts(items.map(\.1.text)),
        ]
        let differences = all.flatMap { receipt in (receipt.comparison?.differences ?? []).map { (receipt, $0) } }
        keys = [
            .int4s(differences.map(\.0.appID)), .texts(differences.map(\.0.environment.rawValue)),
            .texts(differences.map(\.1.originalTransactionID.text)),
            .texts(differences.map { $1.transactionID?.text ?? "" }), .texts(differences.map(\.1.fact.rawValue)),
        ]
        values = [
            .texts(differences.map(\.1.verifyReceipt)), .texts(differences.map(\.1.serverAPI)),
            .texts(differences.map { $1.explanation?.rawValue }),
        ]
        hasDifferences = !differences.isEmpty
    }
}
