/// What verifyReceipt and the Server API state about one receipt at nearly the same time, fact by fact.
///
/// Facts that only one channel has (a price, a percentage) are not compared, nor is a detail that one of them leaves
/// unsaid. What exists is compared: both speak for everything they know.
package struct ChannelComparison: Sendable, Hashable {
    /// The subscriptions and one-time purchases that were compared, sorted.
    package let compared: [OriginalTransactionID]
    /// What differs, in the order of `compared`.
    package let differences: [ChannelDifference]

    /// Creates it from its parts.
    package init(compared: [OriginalTransactionID], differences: [ChannelDifference]) {
        (self.compared, self.differences) = (compared, differences)
    }

    /// Compares two whole answers about the same receipt.
    ///
    /// - Parameters:
    ///   - receipt: What verifyReceipt states.
    ///   - server: What the Server API states: the statuses with the complete history.
    ///   - consumables: The transactions that the Server API calls consumables.
    package init(_ receipt: Evidence, _ server: Evidence, consumables: Set<TransactionID> = []) {
        // Such an answer has the device's row and the newest one.
        let isOld = receipt.receiptCreatedAt == nil && receipt.transactions.count <= 2
        let subscriptions = Set(receipt.subscriptions).union(server.subscriptions).sorted()
        var differences = subscriptions.flatMap { id in
            SubscriptionComparison(
                SubscriptionFacts(receipt.slice(of: id)), SubscriptionFacts(server.slice(of: id)), isOld: isOld
            ).differences
        }
        let (ours, theirs) = (receipt.purchaseFacts, server.purchaseFacts)
        let purchases = Set(ours.keys).union(theirs.keys).sorted()
        for key in purchases {
            differences +=
                PurchaseComparison(
                    ours[key], theirs[key], key: key, consumables: consumables, isOld: isOld
                ).differences
        }
        compared = Set(subscriptions + purchases.map(\.originalTransactionID)).sorted()
        self.differences = differences.sorted { $0.originalTransactionID < $1.originalTransactionID }
    }
}

/// Collects what differs about one period, purchase or renewal.
struct DifferenceList {
    let originalTransactionID: OriginalTransactionID
    private(set) var differences: [ChannelDifference] = []

    init(of id: OriginalTransactionID) { originalTransactionID = id }

    /// Adds a fact, if both texts are not equal.
    mutating func add(
        _ fact: ChannelDifference.Fact, of transaction: TransactionID?, _ receipt: String?, _ server: String?,
        explanation: ChannelDifference.Explanation? = nil
    ) {
        guard receipt != server else { return }
        differences.append(
            ChannelDifference(
                originalTransactionID: originalTransactionID, transactionID: transaction, fact: fact,
                verifyReceipt: receipt, serverAPI: server, explanation: explanation))
    }

    /// Adds a fact that a channel may leave unsaid, if both state it and differ.
    mutating func addSaid(
        _ fact: ChannelDifference.Fact, of transaction: TransactionID?, _ receipt: String?, _ server: String?
    ) {
        guard receipt != nil, server != nil else { return }
        add(fact, of: transaction, receipt, server)
    }
}

extension Evidence {
    /// The one-time purchases of the answer.
    fileprivate var purchaseFacts: [PurchaseKey: PurchaseFacts] {
        purchases.reduce(into: [:]) { $0[$1.key] = reconcilePurchase(nil, with: $1)?.state.facts }
    }
}
