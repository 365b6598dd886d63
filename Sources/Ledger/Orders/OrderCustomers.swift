import Postgres
import SQL
import Subscriptions

/// The customers whom account tokens name: by an order, else by their own id. Such a token decides who owns what carries
/// it before every other rule.
struct OrderCustomers: Sendable {
    /// Whom a token names.
    struct Named: Sendable {
        let claim: OwnershipClaim
        /// Whether the token is of an order of the customer.
        let isOrdered: Bool
    }

    private struct Token: Hashable {
        let appID: Int32
        let text: String
    }

    /// The longest token that is looked up, in bytes: a customer id has up to 255 characters.
    private static let tokenBytesMax = 255

    private let named: [Token: Named]
    /// The tokens of erased customers.
    private let erased: Set<Token>

    /// No tokens.
    static let none = OrderCustomers(named: [:], erased: [])

    private init(named: [Token: Named], erased: Set<Token>) {
        (self.named, self.erased) = (named, erased)
    }

    /// Finds the customers whom the tokens of a batch name: those in its answers, and those that are stored of the same
    /// subscriptions and purchases.
    init(
        of batch: [Settlement], _ subscriptions: some Sequence<SubscriptionDraft>,
        _ purchases: some Sequence<PurchaseDraft>, in transaction: Transaction
    ) throws {
        let said = batch.flatMap { Self.tokens(in: $0.evidence, of: $0.claim.app) }
        let stored = subscriptions.flatMap { draft in
            (draft.state?.facts.periods ?? []).compactMap { period in
                period.details.appAccountToken.flatMap { Self.token($0.value, appID: draft.key.appID) }
            }
        }
        let bought = purchases.compactMap { draft in
            draft.state?.facts.appAccountToken.flatMap { Self.token($0.value, appID: draft.key.appID) }
        }
        try self.init(Set(said + stored + bought), in: transaction)
    }

    private init(_ tokens: Set<Token>, in transaction: Transaction) throws {
        guard !tokens.isEmpty else {
            self.init(named: [:], erased: [])
            return
        }
        let rows = try transaction.query(
            Queries.findOrderCustomers, [.int4s(tokens.map(\.appID)), .texts(tokens.map(\.text))])
        let erased = Set(
            try rows.filter { try $0.bool("is_erased") }.map {
                Token(appID: try $0.int4("app_id"), text: try $0.text("token"))
            })
        let named: [Token: Named] = try rows.filter { try $0.bool("is_erased") == false }.reduce(into: [:]) {
            named, row in
            let token = Token(appID: try row.int4("app_id"), text: try row.text("token"))
            named[token] = Named(
                claim: OwnershipClaim(
                    customer: CustomerID(number: try row.int8("customer_id")), name: try row.text("name"),
                    imported: false, isNew: false),
                isOrdered: try row.bool("is_ordered"))
        }
        self.init(named: named, erased: erased)
    }

    private static func tokens(in evidence: Evidence?, of app: App) -> [Token] {
        (evidence?.transactions ?? []).compactMap { row in row.appAccountToken.flatMap { token($0, appID: app.id) } }
    }

    private static func token(_ text: String, appID: Int32) -> Token? {
        text.utf8.count <= tokenBytesMax ? Token(appID: appID, text: text.lowercased()) : nil
    }

    /// Finds the customers whom the tokens of rows name.
    init(of rows: [(appID: Int32, rows: [TransactionRow])], in transaction: Transaction) throws {
        let tokens = rows.flatMap { entry in
            entry.rows.compactMap { row in row.appAccountToken.flatMap { Self.token($0, appID: entry.appID) } }
        }
        try self.init(Set(tokens), in: transaction)
    }

    /// Returns rows without the account tokens of erased customers, which must not be stored again.
    func withoutErased(_ rows: [TransactionRow], appID: Int32) -> [TransactionRow] {
        guard !erased.isEmpty else { return rows }
        return rows.map { row in
            guard let token = row.appAccountToken.flatMap({ Self.token($0, appID: appID) }), erased.contains(token)
            else { return row }
            var row = row
            row.appAccountToken = nil
            return row
        }
    }

    /// Returns the same answer without the account tokens of erased customers, and then without its body, which has them too.
    func withoutErased(_ settlement: Settlement) -> Settlement {
        guard var evidence = settlement.evidence else { return settlement }
        let rows = withoutErased(evidence.transactions, appID: settlement.claim.app.id)
        guard rows != evidence.transactions else { return settlement }
        evidence.transactions = rows
        return settlement.saying(evidence)
    }

    /// Whether no token names a customer.
    var isEmpty: Bool { named.isEmpty }

    /// Whether a token is of an order.
    var nameOrders: Bool { named.values.contains(where: \.isOrdered) }

    /// Returns the customer whom a token names; nil where it names none.
    func named(by token: String?, appID: Int32) -> Named? {
        token.flatMap { Self.token($0, appID: appID) }.flatMap { named[$0] }
    }
}

extension OrderCustomers.Named {
    /// Whether the customer takes from an owner what an upload brings. A manual assignment yields only to an upload of
    /// the customer's own.
    func takes(from owner: Owner, at upload: OwnershipClaim) -> Bool {
        owner.customer != claim.customer && (upload.customer == claim.customer || owner.cause != .assignment)
    }
}
