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
        /// Whether another customer paid for it.
        package let isShared: Bool
        /// Whether another customer was given it, also where this one owns it now.
        package let isGivenToAnother: Bool

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
            isShared = try row.bool("is_shared")
            isGivenToAnother = try row.bool("is_given_to_another")
        }

        /// Whether it is bought in time for an order: after it, or at most ten minutes before.
        package func isInTime(for order: Order) -> Bool { order.createdAt <= purchasedAt + Payment.orderedLate }

        /// Whether it may have been bought for an order, as far as Apple's words tell. A quantity counts where several
        /// are sold at once.
        fileprivate func fits(_ order: Order) -> Bool {
            productID == order.productID && !isRenewal && isInTime(for: order)
                && (isRestorable || quantity == order.quantity)
                && (tokenOrderID.map { $0 == order.id } ?? !isOfAnother)
        }

        /// Whether another customer owns it or was given it. What an owner only points at goes to the first customer who
        /// shows more.
        private var isCredited: Bool { isGivenToAnother || !isOwned && !isPointed }

        /// Whether it is lost to an order for which the caller named it; what pays it, only if Apple takes it back.
        package func isLost(to order: Order) -> Bool {
            guard orderID != order.id else { return isRevoked }
            return !isKept(as: order.productID) && (isRevoked || isCredited || orderID != nil)
        }

        /// Whether it is lost to an order that nothing pays, for which it may have been bought.
        fileprivate func isRefused(to order: Order) -> Bool {
            fits(order) && (isCredited || orderID == nil && isRevoked)
        }

        /// Whether it is a non-consumable that the customer bought, and owns by more than a pointer.
        fileprivate func isKept(as productID: ProductID) -> Bool {
            self.productID == productID && isOwned && !isPointed && !isShared && !isRevoked && isRestorable && !isPeriod
        }
    }

    /// Everything that it holds, the oldest first.
    package let items: [Item]
    /// What it gave the customer, and what it is still to give, the newest first.
    package let deliveries: [Delivery]
    /// The most deliveries that an upload reports.
    private static let deliveriesMax: Int32 = 100

    /// An empty result, as of a receipt that Apple did not vouch for.
    package static let none = ReceiptPurchases(items: [], deliveries: [])

    /// The transactions that the app may finish: they are stored, for this customer or another one. What is finished
    /// leaves the receipts, unless it can be restored; so a pointer to it is not enough.
    package var finishable: [String] {
        Set(items.filter { !$0.isPointed || $0.isRestorable }.flatMap(\.transactionIDs)).sorted()
    }

    /// The original transactions whose restored or renewed copies the app may finish, whatever their own ids are.
    package var restorable: [String] { Set(items.filter(\.isRestorable).map(\.originalTransactionID.text)).sorted() }

    /// Returns what answers an upload for an order: its deliveries, and the transaction that pays it, else the non-consumable owned already.
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

    /// Returns what an unpaid order has to do with the contents, or with the transaction that the caller names alone.
    /// What is free to pay the order pays it already.
    package func fit(for order: Order, naming transactionID: String? = nil) -> Fit {
        let items = self.items.filter { one in transactionID.map(one.transactionIDs.contains) ?? true }
        if items.contains(where: { $0.isKept(as: order.productID) }) { return .owned }
        let doubted = Set(deliveries.filter { $0.skipReason == "possible_duplicate" }.map(\.transactionID.text))
        let isRefused = items.contains { item in
            item.isRefused(to: order)
                || item.fits(order) && item.orderID == nil && !doubted.isDisjoint(with: item.transactionIDs)
        }
        return isRefused ? .refused : .nothing
    }

    /// Returns the item with a transaction id; nil where the receipt does not hold it.
    package func item(_ transactionID: String) -> Item? { items.first { $0.transactionIDs.contains(transactionID) } }
}

extension LedgerIntake {
    /// Returns an order, and what a stored receipt holds for its customer, or for `customer` without such an order.
    /// Both are of one moment on the primary, because a split may give the order to another customer at any time.
    package func standing(
        of orderID: String?, in bundleID: BundleID, _ receipt: ReceiptID, for customer: String
    ) async throws -> (order: Order?, contents: ReceiptPurchases) {
        try await ledger.deliveries.place()
        return try await database.transaction { transaction in
            try transaction.query(Queries.holdSnapshot)
            let order = try orderID.flatMap(LedgerOrders.canonical).flatMap { id in
                try transaction.query(Queries.readOrder, .text(bundleID.text), .text(id), .text(nil)).first
                    .map(Order.init(row:))
            }
            let customer = order?.customer ?? customer
            return (order, try ReceiptPurchases(in: receipt, for: customer, in: transaction))
        }
    }
}

extension ReceiptPurchases {
    fileprivate init(in receipt: ReceiptID, for customer: String, in transaction: Transaction) throws {
        let rows = try transaction.query(Queries.readReceiptPurchases, .int8(receipt.number), .text(customer))
        let deliveries = try transaction.query(
            Queries.readReceiptDeliveries,
            .int8s(try rows.compactMap { try $0.int8IfPresent("purchase_id") }),
            .int8s(Set(try rows.compactMap { try $0.int8IfPresent("subscription_id") }).sorted()),
            .int8(receipt.number), .text(customer), .int4(Self.deliveriesMax))
        self.init(items: try rows.map(Item.init(row:)), deliveries: try deliveries.map(Delivery.init(row:)))
    }
}
