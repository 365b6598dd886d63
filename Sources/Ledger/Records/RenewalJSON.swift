import Foundation
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
