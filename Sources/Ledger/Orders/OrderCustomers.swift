import Foundation
import Postgres
import SQL
import Subscriptions

/// The customers whose orders' account tokens a batch's answers carry. Such a token names its owner before every other
/// rule.
struct OrderCustomers: Sendable {
    private struct Token: Hashable {
        let appID: Int32
        let text: String
    }

    private let claims: [Token: OwnershipClaim]

    /// No tokens.
    static let none = OrderCustomers(claims: [:])

    private init(claims: [Token: OwnershipClaim]) {
        self.claims = claims
    }

    init(of batch: [Settlement], linked: LinkedContents, in transaction: Transaction) throws {
        let tokens =
            batch.flatMap { Self.tokens(in: $0.evidence, of: $0.claim.app) }
            + linked.tokens.filter { UUID(uuidString: $0.text) != nil }.map {
                Token(appID: $0.appID, text: $0.text.lowercased())
            }
        claims = try Self.claims(of: Set(tokens), by: Queries.findOrderCustomers, in: transaction)
    }

    /// Finds the customers whose own names the tokens in answers are.
    init(namedIn batch: [Settlement], in transaction: Transaction) throws {
        let tokens = batch.flatMap { Self.tokens(in: $0.evidence, of: $0.claim.app) }
        claims = try Self.claims(of: Set(tokens), by: Queries.findTokenCustomers, in: transaction)
    }

    private static func tokens(in evidence: Evidence?, of app: App) -> [Token] {
        (evidence?.transactions ?? []).compactMap(\.appAccountToken).filter { UUID(uuidString: $0) != nil }
            .map { Token(appID: app.id, text: $0.lowercased()) }
    }

    private static func claims(
        of tokens: Set<Token>, by query: SQLFile, in transaction: Transaction
    ) throws -> [Token: OwnershipClaim] {
        guard !tokens.isEmpty else { return [:] }
        let rows = try transaction.query(query, [.int4s(tokens.map(\.appID)), .texts(tokens.map(\.text))])
        return try rows.reduce(into: [:]) { claims, row in
            let token = Token(appID: try row.int4("app_id"), text: try row.text("app_account_token"))
            claims[token] = OwnershipClaim(
                customer: CustomerID(number: try row.int8("customer_id")), name: try row.text("name"),
                imported: false, isNew: false)
        }
    }

    /// Whether no answer carries an order's token.
    var isEmpty: Bool { claims.isEmpty }

    /// Returns the customer of the order with a token; nil where the token belongs to no order.
    func claim(of token: String?, appID: Int32) -> OwnershipClaim? {
        token.flatMap { claims[Token(appID: appID, text: $0.lowercased())] }
    }
}
