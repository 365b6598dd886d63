import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    /// Whether a changed purchase or subscription may pay an order: an answer carries an order's account token, a receipt
    /// was sent for an order, or an owner has an open order. Most settlements pay none.
    private func mayPay(in transaction: Transaction) throws -> Bool {
        if orderCustomers.nameOrders || !orderReceipts.paying.isEmpty { return true }
        let (bought, subscribed) = (purchases.values.filter(\.isChanged), subscriptions.values.filter(\.isChanged))
        let owners = (bought.map(\.ownership) + subscribed.map(\.ownership)).flatMap {
            [$0.owner, $0.current].compactMap { $0?.customer.number }
        }
        guard !owners.isEmpty else { return false }
        let rows = try transaction.query(
            Queries.mayBePaying, .int8s(Set(owners).sorted()), .int8s(bought.map(\.rowID).sorted()),
            .int8s(subscribed.map(\.rowID).sorted()))
        return try rows.first?.bool("is_open") == true
    }

    /// Decides anew what pays the orders that changed purchases and subscriptions may pay, and those for which a receipt
    /// was sent. It comes after the owners are written, and before what is delivered. A payment moves to another order while
    /// nothing of it was acknowledged: the result is the same whatever came first.
    func payOrders(in transaction: Transaction) throws {
        try settleOrderReceipts(in: transaction)
        guard try mayPay(in: transaction) else { return }
        let paying = orderReceipts.paying
        let sent = batch.filter { paying.contains($0.claim.receiptID) }
        let bought = Set(purchases.values.filter(\.isChanged).map(\.rowID))
            .union(sent.flatMap { contents(of: $0).purchases.compactMap { purchases[$0]?.rowID } })
        let subscribed = Set(subscriptions.values.filter(\.isChanged).map(\.rowID))
            .union(sent.flatMap { contents(of: $0).subscriptions.compactMap { subscriptions[$0]?.rowID } })
        try decidePayments(bought: bought, subscribed: subscribed, sent: paying.map(\.number), in: transaction)
    }

    /// Decides anew what pays the orders that anything locked may pay, and the paid ones of `names`, after a person gave
    /// something to another customer or moved the names. It comes after the owners and the names of customers are written.
    /// Then the orders of `tying` get what was given of their payers to one of their customer's names, and lose the rest.
    func decidePayments(
        of names: [CustomerID] = [], tying: [CustomerID] = [], in transaction: Transaction
    ) throws {
        let payers = try transaction.query(Queries.readPayers, .int8s(names.map(\.number)))
        let bought = try payers.compactMap { try $0.int8IfPresent("purchase_id") }
        let subscribed = try payers.compactMap { try $0.int8IfPresent("subscription_id") }
        try decidePayments(
            bought: Set(purchases.values.map(\.rowID) + bought),
            subscribed: Set(subscriptions.values.map(\.rowID) + subscribed), sent: [], in: transaction)
        if !tying.isEmpty { try transaction.query(Queries.tieOrdersOf, .int8s(tying.map(\.number))) }
    }

    private func decidePayments(
        bought: Set<Int64>, subscribed: Set<Int64>, sent: [Int64], in transaction: Transaction
    ) throws {
        let payable = try transaction.query(
            Queries.lockPayable, .int8s(bought.sorted()), .int8s(subscribed.sorted()), .int8s(sent))
        let pool = try PaymentPool(of: payable.map { try $0.text("order_id") }.sorted(), in: transaction)
        try pool.decide(at: recordedMicroseconds, in: transaction)
    }

    /// Marks the receipts of verified answers as settled for the orders that they were sent for.
    private func settleOrderReceipts(in transaction: Transaction) throws {
        let settled = batch.filter { $0.evidence != nil }.map(\.claim.receiptID)
        let sent = orderReceipts.all.filter(settled.contains)
        guard !sent.isEmpty else { return }
        try transaction.query(Queries.settleOrderReceipts, .int8s(sent.map(\.number)))
    }
}

/// The orders and transactions among which payments are decided. It leaves out what was acknowledged or skipped.
struct PaymentPool: Sendable {
    /// The orders that are unpaid, or whose payment may move.
    private(set) var orders: [PayableOrder] = []
    /// The transactions that may pay them.
    private(set) var transactions: [PayingTransaction] = []
    /// What pays orders so far, by order.
    private(set) var paid: [String: PayingTransaction.Bought] = [:]
    /// Why it does, by order.
    private var causes: [String: Payment.Cause] = [:]
    /// What pays orders for good, by order. Where it gave them nothing, they still get it.
    private(set) var kept: [String: PayingTransaction.Bought] = [:]
    /// The orders whose payer Apple took back before it was given.
    private(set) var revoked: Set<String> = []
    /// The transaction ids of what was bought, the one to show first.
    private(set) var transactionIDs: [PayingTransaction.Bought: [TransactionID]] = [:]
    /// The orders by their account tokens.
    private(set) var tokens: [String: String] = [:]

    static let empty = PaymentPool()

    private init() {}

    init(of ids: [String], in transaction: Transaction) throws {
        guard !ids.isEmpty else { return }
        let rows = try transaction.query(Queries.readPayableOrders, .texts(ids))
        let late = Parameter.int8(Payment.orderedLate.milliseconds)
        let paying = try transaction.query(Queries.readPaying, .texts(ids), late)
        var payers: [PayingTransaction.Bought: PayingTransaction] = [:]
        var (spent, takenBack): (Set<PayingTransaction.Bought>, Set<PayingTransaction.Bought>) = ([], [])
        for row in paying {
            let one = try PayingTransaction(row: row)
            payers[one.bought] = one
            transactionIDs[one.bought] = try row.texts("transaction_ids").map { TransactionID($0) }
            if try row.textIfPresent("pays") != nil { spent.insert(one.bought) }
            if try row.bool("is_revoked") { takenBack.insert(one.bought) }
        }
        for row in rows {
            let order = try PayableOrder(row: row)
            tokens[try row.text("app_account_token")] = order.id
            if let bought = try PayingTransaction.Bought(row: row) {
                // What the app's policy transferred to another customer goes on paying the order.
                let (isLost, payer) = (try row.bool("is_lost"), payers[bought])
                let isOwn = payer?.owner == order.customer
                guard isLost || isOwn && payer?.isAcknowledged == false && payer?.isDuplicate == false else {
                    if isOwn, !takenBack.contains(bought) { kept[order.id] = bought }
                    continue
                }
                paid[order.id] = bought
                causes[order.id] = Payment.Cause(rawValue: try row.text("cause"))
                // What Apple took back pays nothing anew.
                if !takenBack.contains(bought) {
                    spent.remove(bought)
                } else if !isLost {
                    revoked.insert(order.id)
                }
            }
            orders.append(order)
        }
        transactions = payers.values.filter { !spent.contains($0.bought) }
    }
}

extension PaymentPool {
    /// Decides anew what pays the orders, writes what changes, and makes delivered what the customers own already.
    func decide(at microseconds: Int64, in transaction: Transaction) throws {
        guard !orders.isEmpty || !kept.isEmpty else { return }
        let instant = Parameter.timestamptz(microseconds: microseconds)
        let payments = matchPayments(transactions, of: orders)
        try write(payments, at: instant, in: transaction)
        let paid = Set(payments.map(\.orderID))
        let unpaid = orders.map(\.id).filter { !paid.contains($0) && !revoked.contains($0) }
        try transaction.query(Queries.ownOrdered, .texts(unpaid), instant)
    }

    /// Writes the payments that are new or have another cause, removes those that are no more, and ties what they give.
    private func write(_ payments: [Payment], at instant: Parameter, in transaction: Transaction) throws {
        // A stronger cause that comes later is the one that counts.
        let made = payments.filter { payment in
            paid[payment.orderID] != payment.bought || causes[payment.orderID].map { payment.cause < $0 } ?? false
        }
        let now = Dictionary(payments.map { ($0.orderID, $0.bought) }) { first, _ in first }
        // An order whose payer Apple took back keeps it, unless another purchase fits.
        let ended = paid.filter { order, bought in
            now[order] != bought && (now[order] != nil || !revoked.contains(order))
        }
        guard !payments.isEmpty || !ended.isEmpty || !kept.isEmpty else { return }
        if !ended.isEmpty {
            try transaction.query(Queries.unpayOrders, .texts(ended.keys.sorted()), instant)
        }
        if !made.isEmpty { try pay(made, at: instant, in: transaction) }
        // A program of before paid orders without giving what was skipped, or tying what was delivered.
        let paying = now.merging(kept) { new, _ in new }
        if !paying.isEmpty { try transaction.query(Queries.giveSkipped, .texts(paying.keys.sorted())) }
        let tied = Set(paying.values).union(ended.values)
        let periods = tied.map(\.rows).filter { $0.purchase == nil }
        try transaction.query(
            Queries.tieDeliveries, .int8s(tied.compactMap(\.rows.purchase).sorted()),
            .int8s(periods.map(\.subscription)), .int8s(periods.map(\.period)))
    }

    private func pay(_ made: [Payment], at instant: Parameter, in transaction: Transaction) throws {
        let facts = Dictionary(transactions.map { ($0.bought, $0) }) { first, _ in first }
        try transaction.query(
            Queries.payOrders, .texts(made.map(\.orderID)), .texts(made.map(\.cause.rawValue)),
            .texts(made.map { facts[$0.bought]?.environment.rawValue }),
            .texts(made.map { transactionIDs[$0.bought]?.first?.text }),
            .instants(made.map { facts[$0.bought]?.purchasedAt }), .int8s(made.map(\.bought.rows.purchase)),
            .int8s(made.map(\.bought.rows.subscription)), .int8s(made.map(\.bought.rows.period)), instant)
    }
}

extension PayableOrder {
    fileprivate init(row: Row) throws {
        self.init(
            id: try row.text("order_id"), customer: try row.int8("customer_id"), productID: try row.id("product_id"),
            quantity: try row.int4IfPresent("quantity").map { Int($0) }, orderedAt: try row.instant("created_at"),
            isOpen: try row.bool("is_open"))
        awaits = try row.idIfPresent("awaits")
        ownedBy = Set(try row.int8s("owned_by").map { .purchase($0) })
    }
}

extension PayingTransaction {
    fileprivate init(row: Row) throws {
        guard let bought = try Bought(row: row) else {
            throw LedgerError(.mismatch, "A transaction is neither a purchase nor a period.")
        }
        self.init(
            bought, in: try row.word("environment"), productID: try row.id("product_id"),
            quantity: Int(try row.int4("quantity")), purchasedAt: try row.instant("purchased_at"),
            owner: try row.int8("owner_id"))
        isClaimed = try row.bool("is_claimed")
        isRenewal = try row.bool("is_renewal")
        let isGiven = try row.boolIfPresent("is_given")
        (isAcknowledged, hasDelivery) = (isGiven ?? false, isGiven != nil)
        isDuplicate = try row.bool("is_duplicate")
        accountToken = try row.textIfPresent("account_token")
        tokenNames =
            try row.textIfPresent("token_order").map { .order($0) }
            ?? row.int8IfPresent("token_customer").map { .customer($0) }
        provedFor = Set(try row.texts("proved_for"))
        sentFor = Set(try row.texts("sent_for"))
        namedFor = Set(try row.texts("named_for"))
    }
}

extension PayingTransaction.Bought {
    fileprivate init?(row: Row) throws {
        if let purchaseID = try row.int8IfPresent("purchase_id") {
            self = .purchase(purchaseID)
        } else if let subscriptionID = try row.int8IfPresent("subscription_id"),
            let periodID = try row.int8IfPresent("period_id")
        {
            self = .period(periodID, of: subscriptionID)
        } else {
            return nil
        }
    }

    var rows: (purchase: Int64?, subscription: Int64?, period: Int64?) {
        switch self {
        case .purchase(let id): (id, nil, nil)
        case .period(let id, let subscriptionID): (nil, subscriptionID, id)
        }
    }
}
