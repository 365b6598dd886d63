import Foundation
import Postgres
import Subscriptions

/// Renewal information as stored in a `jsonb` column.
struct RenewalJSON: Codable {
    var productID: String
    var renewsToProductID: String?
    var willRenew: Bool?
    var expirationIntent: String?
    var inBillingRetry: Bool?
    var graceExpiresAtMilliseconds: Int64?
    var priceConsentStatus: String?
    var priceIncreaseStatus: String?
    var promotionalOfferID: String?
    var offerCodeRefName: String?
    /// True or absent.
    var isInGraceByStatus: Bool?
    var term: TermWillJSON?

    init(_ renewal: Renewal) {
        productID = renewal.productID.text
        renewsToProductID = renewal.renewsToProductID?.text
        willRenew = renewal.willRenew
        expirationIntent = renewal.expirationIntent
        inBillingRetry = renewal.inBillingRetry
        graceExpiresAtMilliseconds = renewal.graceExpiresAt?.milliseconds
        priceConsentStatus = renewal.priceConsentStatus
        priceIncreaseStatus = renewal.priceIncreaseStatus
        promotionalOfferID = renewal.promotionalOfferID
        offerCodeRefName = renewal.offerCodeRefName
        isInGraceByStatus = renewal.isInGraceByStatus ? true : nil
        term = renewal.term.map(TermWillJSON.init)
    }

    var renewal: Renewal {
        Renewal(
            productID: ProductID(productID), renewsToProductID: renewsToProductID.map { ProductID($0) },
            willRenew: willRenew, expirationIntent: expirationIntent, inBillingRetry: inBillingRetry,
            graceExpiresAt: graceExpiresAtMilliseconds.map(Instant.init(milliseconds:)),
            priceConsentStatus: priceConsentStatus, priceIncreaseStatus: priceIncreaseStatus,
            promotionalOfferID: promotionalOfferID, offerCodeRefName: offerCodeRefName,
            isInGraceByStatus: isInGraceByStatus ?? false, term: term?.will)
    }

    enum CodingKeys: String, CodingKey {
        case productID = "product_id"
        case renewsToProductID = "renews_to_product_id"
        case willRenew = "will_renew"
        case expirationIntent = "expiration_intent"
        case inBillingRetry = "in_billing_retry"
        case graceExpiresAtMilliseconds = "grace_expires_at_ms"
        case priceConsentStatus = "price_consent_status"
        case priceIncreaseStatus = "price_increase_status"
        case promotionalOfferID = "promotional_offer_id"
        case offerCodeRefName = "offer_code_ref_name"
        case isInGraceByStatus = "in_grace_by_status"
        case term
    }
}

/// The ending of a period as stored in a `jsonb` column. No clock means the clock of the subscription's renewal; a
/// field that is not among the older ones came from the newest row.
struct EndingJSON: Codable {
    var renewal: RenewalJSON
    var asOfMilliseconds: Int64?
    var path: String
    var olderFields: [String: OriginJSON]?
    var gaveUpAtMilliseconds: Int64?

    init(_ ending: PeriodRecord.Ending) {
        renewal = RenewalJSON(ending.renewal)
        asOfMilliseconds = ending.asOf?.milliseconds
        path = ending.path
        let older = Dictionary(uniqueKeysWithValues: ending.olderFields.map { ($0.rawValue, OriginJSON($1)) })
        olderFields = older.isEmpty ? nil : older
        gaveUpAtMilliseconds = ending.gaveUpAt?.milliseconds
    }

    /// Throws `mismatch` for a field that a newer program wrote.
    var ending: PeriodRecord.Ending {
        get throws {
            let older = try (olderFields ?? [:]).map { name, origin in
                guard let field = PeriodRecord.RenewalField(rawValue: name) else {
                    throw LedgerError(
                        .mismatch, "A period holds the unknown renewal field \(name); run a newer perennial.")
                }
                return (field, origin.origin)
            }
            return PeriodRecord.Ending(
                renewal: renewal.renewal, asOf: asOfMilliseconds.map(Instant.init(milliseconds:)), path: path,
                olderFields: Dictionary(uniqueKeysWithValues: older),
                gaveUpAt: gaveUpAtMilliseconds.map(Instant.init(milliseconds:)))
        }
    }

    enum CodingKeys: String, CodingKey {
        case renewal
        case asOfMilliseconds = "as_of_ms"
        case path
        case olderFields = "older_fields"
        case gaveUpAtMilliseconds = "gave_up_at_ms"
    }
}

/// The source of a fact, as stored in a `jsonb` column.
struct OriginJSON: Codable {
    var asOfMilliseconds: Int64
    var path: String

    init(_ origin: FactOrigin) {
        asOfMilliseconds = origin.asOf.milliseconds
        path = origin.path
    }

    var origin: FactOrigin {
        FactOrigin(asOf: Instant(milliseconds: asOfMilliseconds), path: path)
    }

    enum CodingKeys: String, CodingKey {
        case asOfMilliseconds = "as_of_ms"
        case path
    }
}

/// Text of a `jsonb` column.
enum ColumnJSON {
    static func text(of value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    static func value<Value: Decodable>(_ type: Value.Type, in text: String) throws -> Value {
        try JSONDecoder().decode(type, from: Data(text.utf8))
    }
}

/// The facts of a one-time purchase as stored in a `jsonb` column.
struct PurchaseFactsJSON: Codable {
    struct Terms: Codable {
        var purchasedAtMilliseconds: Int64
        var quantity: Int
        var transactionID: String
        /// True or absent.
        var isOriginal: Bool?
        var origin: OriginJSON

        enum CodingKeys: String, CodingKey {
            case purchasedAtMilliseconds = "purchased_at_ms"
            case quantity
            case transactionID = "transaction_id"
            case isOriginal = "is_original"
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
        var milliunits: Int64?
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
            transactionID: bought.transactionID.text, isOriginal: bought.isOriginal ? true : nil,
            origin: OriginJSON(facts.terms.origin))
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
                    transactionID: TransactionID(terms.transactionID), isOriginal: terms.isOriginal ?? false),
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

/// What an answer took back, as stored in a `jsonb` column.
struct RetractionJSON: Codable {
    var transactionID: String
    var what: String
    var endMilliseconds: Int64?
    var sinceMilliseconds: Int64

    init(_ retraction: Retraction) {
        transactionID = retraction.transactionID.text
        what = retraction.what.rawValue
        endMilliseconds = retraction.end?.milliseconds
        sinceMilliseconds = retraction.since.milliseconds
    }

    /// The retraction; nil where the word is of a later program.
    var retraction: Retraction? {
        Retraction.What(rawValue: what).map {
            Retraction(
                of: TransactionID(transactionID), $0, end: endMilliseconds.map(Instant.init(milliseconds:)),
                since: Instant(milliseconds: sinceMilliseconds))
        }
    }

    enum CodingKeys: String, CodingKey {
        case transactionID = "transaction_id"
        case what
        case endMilliseconds = "end_ms"
        case sinceMilliseconds = "since_ms"
    }
}

/// What signed transactions state of a sale, as stored in a `jsonb` column: of a period, or of a subscription now.
struct SaleJSON: Codable {
    var plan: String?
    var paymentNumber: Int?
    var payments: Int?
    var termEndsAtMilliseconds: Int64?
    var termPrice: Int64?
    var seats: Int?
    var revokedSeats: Int?
    /// True or absent.
    var isOneOfSeveral: Bool?
    var revocationType: String?

    enum CodingKeys: String, CodingKey {
        case plan, payments, seats
        case paymentNumber = "payment_number"
        case termEndsAtMilliseconds = "term_ends_at_ms"
        case termPrice = "term_price"
        case revokedSeats = "revoked_seats"
        case isOneOfSeveral = "one_of_several"
        case revocationType = "revocation_type"
    }

    init(_ sale: Sale) {
        plan = sale.plan
        paymentNumber = sale.payment?.number
        payments = sale.payment?.total
        termEndsAtMilliseconds = sale.payment?.termEndsAt.milliseconds
        termPrice = sale.payment?.termPrice
        seats = sale.seats?.count
        revokedSeats = sale.seats?.revoked
        isOneOfSeveral = sale.isOneOfSeveral ? true : nil
        revocationType = sale.revocationType
    }

    init(_ standing: SaleStanding) {
        plan = standing.plan
        paymentNumber = standing.paymentNumber
        payments = standing.payments
        termEndsAtMilliseconds = standing.termEndsAt?.milliseconds
        seats = standing.seats
    }

    var sale: Sale {
        var payment: Sale.Payment?
        if let paymentNumber, let payments, let termEndsAtMilliseconds {
            payment = Sale.Payment(
                number: paymentNumber, total: payments, termEndsAt: Instant(milliseconds: termEndsAtMilliseconds),
                termPrice: termPrice)
        }
        return Sale(
            plan: plan, payment: payment, seats: seats.map { Sale.Seats(count: $0, revoked: revokedSeats ?? 0) },
            isOneOfSeveral: isOneOfSeveral ?? false, revocationType: revocationType)
    }
}

/// What the customer wants after a term of payments, as stored within a `jsonb` column.
struct TermWillJSON: Codable {
    var renews: Bool?
    var productID: String?
    var plan: String?

    enum CodingKeys: String, CodingKey {
        case renews, plan
        case productID = "product_id"
    }

    init(_ will: TermWill) { (renews, productID, plan) = (will.renews, will.productID?.text, will.plan) }

    var will: TermWill { TermWill(renews: renews, productID: productID.map { ProductID($0) }, plan: plan) }
}
