import Postgres
import Subscriptions

/// The facts of a one-time purchase as stored in a `jsonb` column.
struct PurchaseFactsJSON: Codable {
    struct Terms: Codable {
        var purchasedAtMilliseconds: Int64
        var quantity: Int
        var transactionID: String
        var origin: OriginJSON

        enum CodingKeys: String, CodingKey {
            case purchasedAtMilliseconds = "purchased_at_ms"
            case quantity
            case transactionID = "transaction_id"
            case origin
        }
    }

    struct Cancellation: Codable {
        var cancelledAtMilliseconds: Int64?
        var reason: String?
        var origin: OriginJSON

        enum CodingKeys: String, CodingKey {
            case cancelledAtMilliseconds = "cancelled_at_ms"
            case reason
            case origin
        }
    }

    struct Word: Codable {
        var word: String
        var origin: OriginJSON
    }

    struct Price: Codable {
        var milliunits: Int64
        var currency: String
        var origin: OriginJSON
    }

    struct Share: Codable {
        var percentage: Int
        var origin: OriginJSON
    }

    var terms: Terms
    var revocation: Cancellation
    var ownership: Word?
    var appAccountToken: Word?
    var price: Price?
    var refunded: Share?
    var refundRetractedAtMilliseconds: Int64?

    enum CodingKeys: String, CodingKey {
        case terms
        case revocation
        case ownership
        case appAccountToken = "app_account_token"
        case price
        case refunded
        case refundRetractedAtMilliseconds = "refund_retracted_at_ms"
    }

    init(_ state: PurchaseState) {
        let facts = state.facts
        refundRetractedAtMilliseconds = state.refundRetractedAt?.milliseconds
        let (bought, revoked) = (facts.terms.value, facts.revocation.value)
        terms = Terms(
            purchasedAtMilliseconds: bought.purchasedAt.milliseconds, quantity: bought.quantity,
            transactionID: bought.transactionID.text, origin: OriginJSON(facts.terms.origin))
        revocation = Cancellation(
            cancelledAtMilliseconds: revoked.cancelledAt?.milliseconds, reason: revoked.reason,
            origin: OriginJSON(facts.revocation.origin))
        ownership = facts.ownership.map { Word(word: $0.value.raw, origin: OriginJSON($0.origin)) }
        appAccountToken = facts.appAccountToken.map { Word(word: $0.value, origin: OriginJSON($0.origin)) }
        price = facts.price.map {
            Price(milliunits: $0.value.milliunits, currency: $0.value.currency, origin: OriginJSON($0.origin))
        }
        refunded = facts.revocationPercentage.map { Share(percentage: $0.value, origin: OriginJSON($0.origin)) }
    }

    func facts(of key: PurchaseKey, asOf: Instant, transactionIDs: [String]) -> PurchaseFacts {
        PurchaseFacts(
            key: key, asOf: asOf, transactionIDs: Set(transactionIDs.map { TransactionID($0) }),
            terms: Fact(
                PurchaseTerms(
                    purchasedAt: Instant(milliseconds: terms.purchasedAtMilliseconds), quantity: terms.quantity,
                    transactionID: TransactionID(terms.transactionID)),
                origin: terms.origin.origin),
            revocation: Fact(
                Revocation(
                    cancelledAt: revocation.cancelledAtMilliseconds.map(Instant.init(milliseconds:)),
                    reason: revocation.reason),
                origin: revocation.origin.origin),
            ownership: ownership.map { Fact(Ownership(raw: $0.word), origin: $0.origin.origin) },
            appAccountToken: appAccountToken.map { Fact($0.word, origin: $0.origin.origin) },
            price: price.map {
                Fact(Subscriptions.Price(milliunits: $0.milliunits, currency: $0.currency), origin: $0.origin.origin)
            },
            revocationPercentage: refunded.map { Fact($0.percentage, origin: $0.origin.origin) })
    }
}
