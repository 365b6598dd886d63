import Postgres
import SQL
package import Subscriptions

/// What a receipt holds, for the device that sent it.
package struct ReceiptPurchases: Sendable {
    /// A one-time purchase, or a period of a subscription.
    package struct Item: Sendable, Hashable {
        /// Apple's environment.
        package let environment: StoreEnvironment
        /// Apple's first transaction of the purchase or subscription.
        package let originalTransactionID: OriginalTransactionID
        /// The transaction to show.
        package let transactionID: String
        /// Every transaction id under which Apple listed it.
        package let transactionIDs: [String]
        /// The product.
        package let productID: ProductID
        /// How many.
        package let quantity: Int32
        /// When it was bought.
        package let purchasedAt: Instant
        /// Whether Apple took it back.
        package let isRevoked: Bool
        /// When Apple took it back.
        package let revokedAt: Instant?
        /// Whether it is a period of a subscription.
        package let isPeriod: Bool
        /// Whether a restored copy of it, under another id, may be finished too.
        package let isRestorable: Bool
        /// Whether the customer owns it.
        package let isOwned: Bool
        /// Whether its owner only points at it, by the bare id of a transaction.
        package let isPointed: Bool
        /// Whether it renews a subscription.
        package let isRenewal: Bool
        /// The order that it pays.
        package let orderID: String?
        /// The order that its account token names.
        package let tokenOrderID: String?
        /// Whether its account token is another customer's name, or a family member bought it.
        package let isOfAnother: Bool

        /// Whether it is bought in time for an order: after it, or at most ten minutes before.
        package func isInTime(for order: Order) -> Bool {
            order.createdAt <= purchasedAt + Payment.orderedLate
        }

        /// Whether it may have been bought for an order, as far as Apple's words tell. A quantity counts where several
        /// are sold at once.
        fileprivate func fits(_ order: Order) -> Bool {
            productID == order.productID && !isRenewal && isInTime(for: order)
                && (isRestorable || quantity == order.quantity)
                && (tokenOrderID.map { $0 == order.id } ?? !isOfAnother)
        }

        /// Whether it is a non-consumable that the customer owns by more than a pointer.
        fileprivate func isKept(as productID: ProductID) -> Bool {
            self.productID == productID && isOwned && !isPointed && !isRevoked && isRestorable && !isPeriod
        }
    }

    /// Everything that it holds, the oldest first.
    package let items: [Item]
    /// What it gave the customer, and what it is still to give, the newest first.
    package let deliveries: [Delivery]

    /// An empty result, as of a receipt that Apple did not vouch for.
    package static let none = ReceiptPurchases(items: [], deliveries: [])

    /// The transactions that the app may finish: they are stored, for this customer or another one. What is finished
    /// leaves the receipts, unless it can be restored; so a pointer to it is not enough.
    package var finishable: [String] {
        Set(items.filter { !$0.isPointed || $0.isRestorable }.flatMap(\.transactionIDs)).sorted()
    }

    /// The original transactions whose restored or renewed copies the app may finish, whatever their own ids are.
    package var restorable: [String] { Set(items.filter(\.isRestorable).map(\.originalTransactionID.text)).sorted() }

    /// Returns only what an order is about: the transaction that pays it, and its deliveries; without one, the
    /// non-consumable that the customer owns already.
    package func only(of order: Order) -> ReceiptPurchases {
        ReceiptPurchases(
            items: items.filter { item in
                order.transactionID.map(item.transactionIDs.contains) ?? item.isKept(as: order.productID)
            },
            deliveries: deliveries.filter { $0.orderID == order.id })
    }

    /// What an order that is not paid has to do with the contents; docs/purchases.md has the table.
    package enum Fit: Sendable {
        /// The customer owns the ordered non-consumable.
        case owned
        /// What was bought for it was taken back, is another customer's, or is a possible duplicate.
        case refused
        /// Nothing of it fits, or what fits pays another order of the customer's.
        case nothing
    }

    /// Returns what an unpaid order has to do with the contents. What is free to pay the order pays it already.
    package func fit(for order: Order) -> Fit {
        if items.contains(where: { $0.isKept(as: order.productID) }) { return .owned }
        let isRefused = items.contains { item in
            guard item.fits(order) else { return false }
            return !item.isOwned || item.orderID == nil && (item.isRevoked || isPossibleDuplicate(item))
        }
        return isRefused ? .refused : .nothing
    }

    private func isPossibleDuplicate(_ item: Item) -> Bool {
        deliveries.contains {
            $0.skipReason == "possible_duplicate" && item.transactionIDs.contains($0.transactionID.text)
        }
    }

    /// Returns the item with a transaction id; nil where the receipt does not hold it.
    package func item(_ transactionID: String) -> Item? {
        items.first { $0.transactionIDs.contains(transactionID) }
    }
}

extension LedgerIntake {
    /// The most deliveries that an upload reports.
    private static let deliveriesMax: Int32 = 100

    /// Returns what a stored receipt holds, and what it gave a customer, from the primary.
    package func purchases(in receipt: ReceiptID, for customer: String) async throws -> ReceiptPurchases {
        try await ledger.deliveries.place()
        return try await database.transaction { transaction in
            let rows = try transaction.query(
                Queries.readReceiptPurchases, [.int8(receipt.number), .text(customer)])
            let deliveries = try transaction.query(
                Queries.readReceiptDeliveries,
                [
                    .int8s(try rows.compactMap { try $0.int8IfPresent("purchase_id") }),
                    .int8s(Set(try rows.compactMap { try $0.int8IfPresent("subscription_id") }).sorted()),
                    .int8(receipt.number), .text(customer), .int4(Self.deliveriesMax),
                ])
            return ReceiptPurchases(
                items: try rows.map(ReceiptPurchases.Item.init(row:)),
                deliveries: try deliveries.map(Delivery.init(row:)))
        }
    }
}

extension ReceiptPurchases.Item {
    fileprivate init(row: Row) throws {
        environment = try row.word("environment")
        originalTransactionID = OriginalTransactionID(try row.text("original_transaction_id"))
        transactionID = try row.text("transaction_id")
        transactionIDs = try row.texts("transaction_ids")
        productID = ProductID(try row.text("product_id"))
        quantity = try row.int4("quantity")
        purchasedAt = try row.instant("purchased_at")
        isRevoked = try row.bool("is_revoked")
        revokedAt = try row.instantIfPresent("revoked_at")
        isPeriod = try row.int8IfPresent("subscription_id") != nil
        isRestorable = try row.bool("is_restorable")
        isOwned = try row.bool("is_owner")
        isPointed = try row.bool("is_pointed")
        isRenewal = try row.bool("is_renewal")
        orderID = try row.textIfPresent("pays")
        tokenOrderID = try row.textIfPresent("token_order")
        isOfAnother = try row.bool("is_of_another")
    }
}
