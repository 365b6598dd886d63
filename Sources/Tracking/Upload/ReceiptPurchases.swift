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

    /// Returns only an order's deliveries, and the transaction that pays it, else the non-consumable owned already.
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

/// The last check of a receipt, as seen by an upload of it.
package struct LastCheck: Sendable {
    /// The outcome of the answer; nil before the first one.
    let outcome: Outcome?
    /// The reason why it was not verified, or an oddity of the answer, in one sentence.
    let reason: String?
    /// Whether the check covered the last upload, so that its claims to ownership and to pay an order are resolved.
    let resolvedClaims: Bool
    /// Why the contents are believed to be the sender's.
    let vouching: Vouching
    /// The lease token of the settlement that wrote it.
    let settledToken: Int64
    /// Nil when no further check is planned.
    let nextCheckAt: Instant?

    fileprivate init?(of receipt: ReceiptID, for claim: UploadClaim?, in transaction: Transaction) throws {
        let rows = try transaction.query(
            Queries.readLastCheck, [.int8(receipt.number), .text(claim?.customer), .text(claim?.orderID)])
        guard let row = rows.first else { return nil }
        outcome = try row.textIfPresent("outcome").flatMap { Outcome(rawValue: $0) }
        reason = try row.textIfPresent("reason")
        resolvedClaims = try row.bool("claims_are_resolved")
        vouching = Vouching(try row.word("form"), isVouched: try row.bool("vouched"))
        settledToken = try row.int8("settled_token")
        nextCheckAt = try row.instantIfPresent("next_check_at")
    }

    /// Returns whether a check for this upload would have the same result: this check covered the upload, or Apple did
    /// not verify the receipt in a check settled since `before`, while the uploader waited.
    fileprivate func answers(since before: LastCheck?) -> Bool {
        switch outcome {
        case .verified: resolvedClaims
        case .rejected, .indeterminate: before.map { $0.settledToken != settledToken } ?? false
        case nil: false
        }
    }
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
                try transaction.query(Queries.readOrder, [.text(bundleID.text), .text(id), .text(nil)]).first
                    .map(Order.init(row:))
            }
            let customer = order?.customer ?? customer
            return (order, try ReceiptPurchases(in: receipt, for: customer, in: transaction))
        }
    }

    /// Returns the last check of a receipt; nil when the receipt is not stored.
    package func lastCheck(of receipt: ReceiptID, for claim: UploadClaim?) async throws -> LastCheck? {
        try await database.transaction { try LastCheck(of: receipt, for: claim, in: $0) }
    }

    /// Returns the seconds for which a process without a sign of life, or a secret that Apple refuses, keeps a receipt
    /// from being asked about; nil for none. With `backingOff` its own back-off counts too, an hour of it at most.
    package func secondsHeld(_ receipt: ReceiptID, backingOff: Bool = false) async throws -> Int? {
        try await query(Queries.readLease, [.int8(receipt.number), .bool(backingOff)]).first.map {
            Int(try $0.int8("seconds"))
        }
    }

    /// Returns the result of another process's check of a receipt, if it is as good as a check for this upload now; nil
    /// when Apple has to be asked. `before` is the last check when the other process was found asking. The customer's own
    /// subscriptions count as already owned, whether or not that check had to assign them. The other check reports the
    /// events.
    package func settled(
        _ receipt: ReceiptID, for claim: UploadClaim?, since before: LastCheck?
    ) async throws -> Settled? {
        guard let claim else { return nil }
        return try await database.transaction { transaction in
            guard let last = try LastCheck(of: receipt, for: claim, in: transaction),
                last.answers(since: before), let outcome = last.outcome
            else { return nil }
            let contents = outcome == .verified ? try contents(of: receipt, for: claim.customer, in: transaction) : []
            return Settled(
                receiptID: receipt, outcome: outcome, reason: last.reason, refusal: nil, retry: .later,
                vouching: last.vouching, orderIDs: Set([claim.orderID].compactMap(\.self)), subscriptions: contents,
                purchaseEvents: [], nextCheckAt: last.nextCheckAt)
        }
    }

    private func contents(
        of receipt: ReceiptID, for customer: String?, in transaction: Transaction
    ) throws -> [Settled.SubscriptionOutcome] {
        let rows = try transaction.query(Queries.readContents, [.int8(receipt.number)])
        let drafts = try LoadedSubscriptions(
            rows, of: [:], recordedMicroseconds: 0, lockingOwners: false, in: transaction
        ).drafts.values
        let byID = Dictionary(drafts.map { ($0.rowID, $0) }) { first, _ in first }
        return try rows.compactMap { row -> Settled.SubscriptionOutcome? in
            guard let draft = byID[try row.int8("subscription_id")], let state = draft.stored else { return nil }
            let policy = Policy.standard(for: draft.key.environment).with(leeway: state.leeway)
            var ownership: [AppCustomerID: OwnershipAnswer] = [:]
            if let name = customer.map({ AppCustomerID($0) }), let owner = try row.textIfPresent("owner") {
                ownership[name] = AppCustomerID(owner) == name ? .held : .refused("Another customer owns it.")
            }
            return Settled.SubscriptionOutcome(
                id: draft.key.id, environment: draft.key.environment,
                verdict: verdict(of: state.facts, at: state.asOf, policy: policy), events: [], ownership: ownership)
        }
    }
}

extension ReceiptPurchases {
    fileprivate init(in receipt: ReceiptID, for customer: String, in transaction: Transaction) throws {
        let rows = try transaction.query(Queries.readReceiptPurchases, [.int8(receipt.number), .text(customer)])
        let deliveries = try transaction.query(
            Queries.readReceiptDeliveries,
            [
                .int8s(try rows.compactMap { try $0.int8IfPresent("purchase_id") }),
                .int8s(Set(try rows.compactMap { try $0.int8IfPresent("subscription_id") }).sorted()),
                .int8(receipt.number), .text(customer), .int4(Self.deliveriesMax),
            ])
        self.init(items: try rows.map(Item.init(row:)), deliveries: try deliveries.map(Delivery.init(row:)))
    }
}
