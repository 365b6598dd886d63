import Crypto
import Foundation
import Postgres
import SQL
package import Subscriptions

/// What a device proves to send about an order, with the order's key: an HMAC-SHA256 in lower-case hex. It shows that
/// the message is about the order, never that the sender owns a receipt.
package struct OrderProof: Sendable, Hashable {
    package let orderID: String
    /// The ASCII texts that may have been authenticated: with the id in lower case, in upper case, and as it was sent.
    private let messages: [String]
    let code: String

    /// A proof about a receipt, over `<order id>.<lower-case hex SHA-256 of the decoded receipt>`.
    package init(of orderID: String, receipt: [UInt8], code: String) {
        let digest = SHA256.hash(data: Data(receipt)).hexadecimal
        self.init(orderID: orderID, about: digest, code: code)
    }

    /// A proof about a state, over `<order id>.<state>.<code, or nothing>`.
    package init(of orderID: String, state: OrderState, stateCode: String?, code: String) {
        self.init(orderID: orderID, about: "\(state.rawValue).\(stateCode ?? "")", code: code)
    }

    private init(orderID: String, about subject: String, code: String) {
        let canonical = LedgerOrders.canonical(orderID) ?? orderID
        (self.orderID, self.code) = (canonical, code)
        messages = [canonical, canonical.uppercased(), orderID].map { "\($0).\(subject)" }
    }

    /// Whether the proof was made with a key, which is 32 bytes in Base64. It takes the same time for every wrong one.
    package func isMade(with key: String) -> Bool {
        let bytes = Self.bytes(hex: code)
        let rights = messages.map { message in
            HMAC<SHA256>.isValidAuthenticationCode(
                bytes ?? Array(repeating: 0, count: SHA256.byteCount), authenticating: Data(message.utf8),
                using: SymmetricKey(data: Data(base64Encoded: key) ?? Data()))
        }
        return rights.contains(true) && bytes != nil
    }

    private static func bytes(hex: String) -> [UInt8]? {
        let digits = Array(hex.utf8)
        guard digits.count == 2 * SHA256.byteCount, digits.allSatisfy(\.isLowerHex) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).compactMap {
            UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16)
        }
    }
}

extension LedgerOrders {
    /// Returns an order's id as it is stored, sealed and counted: a UUID in lower case; nil for another text.
    package static func canonical(_ id: String) -> String? { UUID(uuidString: id)?.uuidString.lowercased() }

    /// The longest code of a reported state, in bytes.
    package static let codeBytesMax = 255
    /// A key that no order has: a proof of an unknown order takes as long as a wrong one.
    private static let noKey = Data(repeating: 0, count: 32).base64EncodedString()

    /// Whether a proof is of an order that may still be proved: until 90 days after it ended.
    package func accepts(_ proof: OrderProof) async throws -> Bool {
        guard let seal = ledger.seal else { throw LedgerError(.mismatch, "Proofs need PERENNIAL_MASTER_KEY.") }
        let isID = Self.canonical(proof.orderID) != nil
        let id = isID ? proof.orderID : UUID().uuidString
        let row = try await query(Queries.readOrderKey, .text(id)).first
        let key = try row.map { try seal.open(try $0.bytea("sealed_key"), for: Self.keyOwner(id)) }
        return proof.isMade(with: key ?? Self.noKey) && key != nil && isID
    }

    /// Records what a device reports of an order: purchasing, deferred, cancelled or failed, with an error code of
    /// StoreKit for example. Returns the state, which a paid or expired order keeps; nil: the proof is refused. Throws
    /// `invalid` for another state, or a code that is too long or holds a NUL.
    package func report(_ state: OrderState, code: String?, of id: String, proof: String) async throws -> OrderState? {
        switch state {
        case .purchasing, .deferred, .cancelled, .failed: break
        case .created, .paid, .delivered, .expired, .refunded:
            throw LedgerError(.invalid, "A device reports purchasing, deferred, cancelled or failed.")
        }
        guard code.map({ $0.utf8.count <= Self.codeBytesMax && !$0.utf8.contains(0) }) ?? true else {
            throw LedgerError(.invalid, "A code has at most \(Self.codeBytesMax) bytes, and no NUL.")
        }
        guard try await accepts(OrderProof(of: id, state: state, stateCode: code, code: proof)) else { return nil }
        let waits = Self.waitsDeferred.milliseconds / Int64(ledger.speedup)
        let row = try await write(
            Queries.reportOrder, .text(Self.canonical(id)), .text(state.rawValue), .text(code), .int8(waits)
        ).first
        return try row?.word("state")
    }
}

/// What devices sent with proofs for the orders that a batch may pay, and no customer was given: a proof may always claim it.
struct ProvablePurchases: Sendable {
    /// The orders for which each purchase was sent, by the keys of the purchases.
    private(set) var orders: [Int64: Set<String>] = [:]
    private(set) var customers: [String: Claimant] = [:]
    /// The receipts that hold them.
    private(set) var receipts: Set<Int64> = []

    static let none = ProvablePurchases()

    private init() {}

    /// Reads them before any lock. What Apple takes back frees the order that it pays, whatever receipt shows it.
    init(of batch: [Settlement], in transaction: Transaction) throws {
        let takenBack = batch.flatMap(\.purchases).filter { _, evidence in
            evidence.transactions.contains { $0.cancelledAt != nil }
        }
        let rows = try transaction.query(
            Queries.findProvable,
            [.int8s(batch.map(\.claim.receiptID.number))]
                + PurchaseRowKey.parameters(Set(takenBack.map(\.key)).sorted()))
        for row in rows {
            let order = try row.text("order_id")
            orders[try row.int8("purchase_id"), default: []].insert(order)
            receipts.insert(try row.int8("receipt_id"))
            customers[order] = try Claimant(ofOrder: row)
        }
    }

    var purchases: [Int64] { orders.keys.sorted() }
}

/// The orders for which a batch's receipts were sent. What such a receipt holds may pay its order, whenever Apple lists it.
struct OrderReceipts: Sendable {
    struct Sent: Sendable {
        let orderID: String
        /// Whether a device sent it with a proof.
        let isProved: Bool
        /// Whether no answer came since.
        let isNew: Bool
        /// Whether it is unpaid, or its payment may move.
        let isPayable: Bool
        /// The transaction that a service named for it.
        let transactionID: TransactionID?
        /// The order's customer, who may claim one transaction by the proof.
        let customer: Claimant

        init(row: Row) throws {
            orderID = try row.text("order_id")
            isProved = try row.bool("is_proved")
            isNew = try row.bool("is_new")
            isPayable = try row.bool("is_payable")
            transactionID = try row.idIfPresent("transaction_id")
            customer = try Claimant(ofOrder: row)
        }
    }

    /// The orders and transactions among which proofs claim; empty where none does.
    private(set) var pool = PaymentPool.empty
    /// What proofs may claim beside the batch's own contents.
    private(set) var provable = ProvablePurchases.none
    /// The purchases that no proof may claim, as far as their payments, deliveries and owners say.
    private(set) var unclaimablePurchases: Set<Int64> = []
    /// The subscriptions that no proof may claim, likewise.
    private(set) var unclaimableSubscriptions: Set<Int64> = []
    /// The purchases that were listed as possible duplicates of another one.
    private(set) var duplicates: Set<Int64> = []
    private var sent: [ReceiptID: [Sent]] = [:]

    static let none = OrderReceipts()

    private init() {}

    /// Reads the orders of the receipts of a batch. `purchases` and `subscriptions` are its locked rows.
    init(
        of batch: [Settlement], provable: ProvablePurchases, purchases: [Row], subscriptions: [Row],
        in transaction: Transaction
    ) throws {
        let rows = try transaction.query(Queries.readOrderReceipts, .int8s(batch.map(\.claim.receiptID.number)))
        for row in rows { sent[ReceiptID(try row.int8("receipt_id")), default: []].append(try Sent(row: row)) }
        func mayClaim(_ one: Sent) -> Bool { one.isPayable && (one.isProved || !provable.purchases.isEmpty) }
        let claiming = provable.receipts.union(sent.filter { $0.value.contains(where: mayClaim) }.keys.map(\.number))
        guard !claiming.isEmpty else { return }
        self.provable = provable
        // Two settlements with proofs of one customer claim one after the other, so that an order never claims twice.
        let claimers = Set(sent.values.joined().filter(mayClaim).map(\.customer) + provable.customers.values)
        try transaction.query(Queries.lockClaimers, .int8s(Set(claimers.map(\.customer.number)).sorted()))
        let things: [Parameter] = [
            .int8s(try purchases.map { try $0.int8("purchase_id") }),
            .int8s(try subscriptions.map { try $0.int8("subscription_id") }),
        ]
        // A delivery that is being acknowledged at this moment keeps a proof from claiming what it gave.
        try transaction.query(Queries.markDue, things)
        let found = try transaction.query(Queries.findUnclaimable, things)
        let unclaimable = try found.filter { try $0.bool("is_duplicate") == false }
        unclaimablePurchases = Set(try unclaimable.compactMap { try $0.int8IfPresent("purchase_id") })
        unclaimableSubscriptions = Set(try unclaimable.compactMap { try $0.int8IfPresent("subscription_id") })
        duplicates = Set(try found.filter { try $0.bool("is_duplicate") }.map { try $0.int8("purchase_id") })
        let payable = try transaction.query(Queries.findPayable, .int8s(claiming.sorted()))
        pool = try PaymentPool(of: payable.map { try $0.text("order_id") }, in: transaction)
    }

    /// Returns the orders for which a receipt was sent, the oldest first.
    func orders(of receipt: ReceiptID) -> [Sent] { sent[receipt] ?? [] }

    /// The receipts whose contents may pay an order that they were sent for.
    var paying: [ReceiptID] { sent.filter { $0.value.contains(where: \.isPayable) }.keys.sorted() }

    var all: [ReceiptID] { sent.keys.sorted() }

    /// Returns the customer of an order for which a receipt was sent.
    func customer(of order: String) -> Claimant? {
        sent.values.joined().first { $0.orderID == order }?.customer ?? provable.customers[order]
    }

}

extension SettlementRun {
    /// What a proof may claim: a one-time purchase, or the subscription of a period.
    private enum Claimable {
        case purchase(PurchaseRowKey)
        case subscription(SubscriptionRowKey)
    }

    /// Gives the customers of orders what pays these in the receipts that devices sent with the orders' proofs.
    ///
    /// A proof shows that the upload is about the order, never that the receipt is the sender's. So it claims only the
    /// transaction that pays the order by the one rule of payments, if its owner is none or an uploader who got nothing of it.
    mutating func claimByProof() {
        let pool = orderReceipts.pool
        guard !pool.orders.isEmpty else { return }
        let stored = Dictionary(pool.transactions.map { ($0.bought, $0) }) { first, _ in first }
        var things: [PayingTransaction.Bought: (thing: Claimable, transaction: PayingTransaction)] = [:]
        var (bought, subscribed): (Set<PurchaseRowKey>, Set<SubscriptionRowKey>) = ([], [])
        for settlement in batch
        where settlement.evidence != nil && !wasSettledBefore(settlement) && settlement.vouching != .pointer {
            let contents = self.contents(of: settlement)
            bought.formUnion(contents.purchases)
            subscribed.formUnion(contents.subscriptions)
        }
        let provable = orderReceipts.provable
        bought.formUnion(purchases.filter { provable.orders[$0.value.rowID] != nil }.keys)
        for key in bought {
            if let one = transaction(of: key, stored) { things[one.bought] = (.purchase(key), one) }
        }
        for key in subscribed {
            for one in transactions(of: key, stored) { things[one.bought] = (.subscription(key), one) }
        }
        let elsewhere = pool.transactions.filter { !isLoaded($0.bought, bought, subscribed) }
        let payments = matchPayments(elsewhere + things.values.map(\.transaction), of: pool.orders, isClaiming: true)
        for payment in payments {
            guard let found = things[payment.bought], found.transaction.provedFor.contains(payment.orderID),
                let claimant = orderReceipts.customer(of: payment.orderID)
            else { continue }
            give(found.thing, to: claimant)
        }
    }

    private func isLoaded(
        _ bought: PayingTransaction.Bought, _ purchaseKeys: Set<PurchaseRowKey>,
        _ subscriptionKeys: Set<SubscriptionRowKey>
    ) -> Bool {
        switch bought {
        case .purchase(let id): purchaseKeys.contains { purchases[$0]?.rowID == id }
        case .period(_, let id): subscriptionKeys.contains { subscriptions[$0]?.rowID == id }
        }
    }

    /// Returns a one-time purchase as payments see it now; nil where it pays nothing any more.
    private func transaction(
        of key: PurchaseRowKey, _ stored: [PayingTransaction.Bought: PayingTransaction]
    ) -> PayingTransaction? {
        guard let draft = purchases[key], let facts = draft.state?.facts, facts.revocation.value.cancelledAt == nil,
            facts.ownership?.value.isPayer ?? true
        else { return nil }
        let terms = facts.terms.value
        let one = PayingTransaction(
            .purchase(draft.rowID), in: key.environment, productID: key.purchase.productID, quantity: terms.quantity,
            purchasedAt: terms.purchasedAt, owner: draft.ownership.buyer?.customer.number)
        return completed(
            one, as: stored[one.bought], isStored: draft.stored != nil,
            isClaimable: !orderReceipts.unclaimablePurchases.contains(draft.rowID), token: facts.appAccountToken?.value,
            transactionIDs: facts.transactionIDs, appID: key.appID,
            sentWith: receipts { contents(of: $0).purchases.contains(key) },
            provedFor: orderReceipts.provable.orders[draft.rowID] ?? [])
    }

    /// Returns the periods of a subscription likewise.
    private func transactions(
        of key: SubscriptionRowKey, _ stored: [PayingTransaction.Bought: PayingTransaction]
    ) -> [PayingTransaction] {
        guard let draft = subscriptions[key], let facts = draft.state?.facts else { return [] }
        let renewals = facts.renewals(by: draft.tolerances)
        let sent = receipts { contents(of: $0).subscriptions.contains(key) }
        return facts.periods.enumerated().compactMap { index, period in
            guard !period.isRefunded, !period.isShared else { return nil }
            // A period that is not stored yet has no id of its own.
            var one = PayingTransaction(
                .period(period.id ?? -Int64(index) - 1, of: draft.rowID), in: key.environment,
                productID: period.productID, quantity: period.terms.value.quantity, purchasedAt: period.purchasedAt,
                owner: draft.ownership.buyer?.customer.number)
            one.isRenewal = renewals[index]
            return completed(
                one, as: stored[one.bought], isStored: period.id != nil,
                isClaimable: !orderReceipts.unclaimableSubscriptions.contains(draft.rowID),
                token: period.details.appAccountToken?.value, transactionIDs: period.transactionIDs, appID: key.appID,
                sentWith: sent)
        }
    }

    private func receipts(where holds: (Settlement) -> Bool) -> [OrderReceipts.Sent] {
        batch.filter(holds).flatMap { orderReceipts.orders(of: $0.claim.receiptID) }
    }

    /// Returns a transaction with what is stored of it and what receipts were sent for; nil where it pays an order for good.
    private func completed(
        _ transaction: PayingTransaction, as stored: PayingTransaction?, isStored: Bool, isClaimable: Bool,
        token: String?, transactionIDs: Set<TransactionID>, appID: Int32, sentWith sent: [OrderReceipts.Sent],
        provedFor: Set<String> = []
    ) -> PayingTransaction? {
        let pool = orderReceipts.pool
        let isOwnedHere = transaction.owner.map { owner in pool.orders.contains { $0.customer == owner } } ?? false
        // What a customer of the pool owns and the pool leaves out pays another order, or was bought too long ago.
        if isStored, isOwnedHere, stored == nil { return nil }
        var one = transaction
        one.isClaimable = isClaimable
        one.isClaimed = stored?.isClaimed ?? false
        one.isAcknowledged = stored?.isAcknowledged ?? false
        one.hasDelivery = stored?.hasDelivery ?? false
        let isListed = one.bought.rows.purchase.map(orderReceipts.duplicates.contains) ?? false
        one.isDuplicate = stored?.isDuplicate ?? isListed
        one.accountToken = token?.lowercased()
        if let order = one.accountToken.flatMap({ pool.tokens[$0] }) {
            one.tokenNames = .order(order)
        } else {
            // An order that is not in the pool is of another product or customer.
            one.tokenNames = orderCustomers.named(by: token, appID: appID).map { named in
                named.isOrdered ? .order("") : .customer(named.claimant.customer.number)
            }
        }
        one.provedFor = (stored?.provedFor ?? provedFor).union(sent.filter(\.isProved).map(\.orderID))
        one.sentFor = (stored?.sentFor ?? []).union(sent.filter { !$0.isProved }.map(\.orderID))
        one.namedFor = (stored?.namedFor ?? []).union(
            sent.filter { $0.transactionID.map(transactionIDs.contains) ?? false }.map(\.orderID))
        return one
    }

    private mutating func give(_ thing: Claimable, to claimant: Claimant) {
        switch thing {
        case .purchase(let key):
            purchases[key]?.give(to: claimant.customer, named: claimant.name, because: .proof)
            purchases[key]?.markChanged()
        case .subscription(let key):
            subscriptions[key]?.give(to: claimant.customer, named: claimant.name, because: .proof)
        }
    }
}
