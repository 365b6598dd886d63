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

    /// No tokens.
    static let none = OrderCustomers(named: [:])

    private init(named: [Token: Named]) {
        self.named = named
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
            named = [:]
            return
        }
        let rows = try transaction.query(
            Queries.findOrderCustomers, [.int4s(tokens.map(\.appID)), .texts(tokens.map(\.text))])
        named = try rows.reduce(into: [:]) { named, row in
            let token = Token(appID: try row.int4("app_id"), text: try row.text("token"))
            named[token] = Named(
                claim: OwnershipClaim(
                    customer: CustomerID(number: try row.int8("customer_id")), name: try row.text("name"),
                    imported: false, isNew: false),
                isOrdered: try row.bool("is_ordered"))
        }
    }

    private static func tokens(in evidence: Evidence?, of app: App) -> [Token] {
        (evidence?.transactions ?? []).compactMap { row in row.appAccountToken.flatMap { token($0, appID: app.id) } }
    }

    private static func token(_ text: String, appID: Int32) -> Token? {
        text.utf8.count <= tokenBytesMax ? Token(appID: appID, text: text.lowercased()) : nil
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
