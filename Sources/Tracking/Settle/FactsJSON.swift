import JSON
import Subscriptions

/// Facts as they are stored in `jsonb` columns. What is not known has no member; what is not of the stored form makes
/// the reading fail.
extension JSONValue {
    fileprivate func instantIfPresent(_ name: String) throws(NotJSON) -> Instant? {
        try integerIfPresent(name).map(Instant.init(milliseconds:))
    }

    fileprivate static func optional(_ instant: Instant?) -> JSONValue { .optional(instant?.milliseconds) }
    fileprivate static func optional(_ number: Int?) -> JSONValue { .optional(number.map(Int64.init)) }

    fileprivate static func origins(_ origins: [(String, FactOrigin)]) -> JSONValue {
        origins.isEmpty ? .null : .object(Dictionary(uniqueKeysWithValues: origins.map { ($0, $1.json) }))
    }

    fileprivate func origins<Name: RawRepresentable<String>>(of kind: String) throws -> [Name: FactOrigin] {
        guard case .object(let members) = self else { throw NotJSON("no object of sources") }
        return Dictionary(
            uniqueKeysWithValues: try members.map { word, origin in
                guard let name = Name(rawValue: word) else {
                    throw LedgerError(.mismatch, "A period holds the unknown \(kind) \(word); run a newer perennial.")
                }
                return (name, try FactOrigin(origin))
            })
    }

    fileprivate static func word<Value>(_ fact: Fact<Value>?, _ word: (Value) -> String) -> JSONValue {
        fact.map { ["word": .string(word($0.value)), "origin": $0.origin.json] } ?? .null
    }

    fileprivate static func share(_ fact: Fact<Int>?) -> JSONValue {
        fact.map { ["percentage": .integer(Int64($0.value)), "origin": $0.origin.json] } ?? .null
    }
}

extension FactOrigin {
    var json: JSONValue { ["as_of_ms": .integer(asOf.milliseconds), "path": .string(path)] }

    init(_ stored: JSONValue) throws(NotJSON) {
        self.init(asOf: Instant(milliseconds: try stored.integer("as_of_ms")), path: try stored.text("path"))
    }
}

extension [PeriodRecord.FactName: FactOrigin] {
    /// The sources of facts that do not come from the newest row.
    var json: JSONValue { .origins(map { ($0.rawValue, $1) }) }

    /// Throws `mismatch` for a fact that a newer program wrote.
    init(stored: JSONValue) throws { self = try stored.origins(of: "fact") }
}

extension Renewal {
    var json: JSONValue {
        .known([
            "product_id": .string(productID.text),
            "renews_to_product_id": .optional(renewsToProductID?.text),
            "will_renew": .optional(willRenew),
            "expiration_intent": .optional(expirationIntent),
            "in_billing_retry": .optional(inBillingRetry),
            "grace_expires_at_ms": .optional(graceExpiresAt),
            "price_consent_status": .optional(priceConsentStatus),
            "price_increase_status": .optional(priceIncreaseStatus),
            "promotional_offer_id": .optional(promotionalOfferID),
            "offer_code_ref_name": .optional(offerCodeRefName),
            "in_grace_by_status": .optional(isInGraceByStatus),
            "term": term?.json ?? .null,
        ])
    }

    init(_ stored: JSONValue) throws(NotJSON) {
        self.init(productID: ProductID(try stored.text("product_id")))
        renewsToProductID = try stored.textIfPresent("renews_to_product_id").map { ProductID($0) }
        willRenew = try stored.flagIfPresent("will_renew")
        expirationIntent = try stored.textIfPresent("expiration_intent")
        inBillingRetry = try stored.flagIfPresent("in_billing_retry")
        graceExpiresAt = try stored.instantIfPresent("grace_expires_at_ms")
        priceConsentStatus = try stored.textIfPresent("price_consent_status")
        priceIncreaseStatus = try stored.textIfPresent("price_increase_status")
        promotionalOfferID = try stored.textIfPresent("promotional_offer_id")
        offerCodeRefName = try stored.textIfPresent("offer_code_ref_name")
        isInGraceByStatus = try stored.flagIfPresent("in_grace_by_status")
        if let stored = stored["term"] { term = try TermWill(stored) }
    }
}

extension TermWill {
    fileprivate var json: JSONValue {
        .known(["renews": .optional(renews), "product_id": .optional(productID?.text), "plan": .optional(plan)])
    }

    fileprivate init(_ stored: JSONValue) throws(NotJSON) {
        self.init(
            renews: try stored.flagIfPresent("renews"),
            productID: try stored.textIfPresent("product_id").map { ProductID($0) },
            plan: try stored.textIfPresent("plan"))
    }
}

extension PeriodRecord.Ending {
    /// No clock means the clock of the subscription's renewal; a field that is not among the older ones came from the
    /// newest row.
    var json: JSONValue {
        .known([
            "renewal": renewal.json, "as_of_ms": .optional(asOf), "path": .string(path),
            "older_fields": .origins(olderFields.map { ($0.rawValue, $1) }), "gave_up_at_ms": .optional(gaveUpAt),
        ])
    }

    /// Throws `mismatch` for a field that a newer program wrote.
    init(_ stored: JSONValue) throws {
        self.init(
            renewal: try Renewal(stored.member("renewal")), asOf: try stored.instantIfPresent("as_of_ms"),
            path: try stored.text("path"), olderFields: try stored["older_fields"]?.origins(of: "renewal field") ?? [:],
            gaveUpAt: try stored.instantIfPresent("gave_up_at_ms"))
    }
}

extension PurchaseState {
    /// The facts of a one-time purchase, apart from its key, its clock and the ids of its transactions, and when its
    /// refund was taken back.
    var json: JSONValue {
        let (bought, revoked) = (facts.terms.value, facts.revocation.value)
        return .known([
            "terms": .known([
                "purchased_at_ms": .integer(bought.purchasedAt.milliseconds),
                "quantity": .integer(Int64(bought.quantity)),
                "transaction_id": .string(bought.transactionID.text),
                "is_original": bought.isOriginal ? true : nil, "origin": facts.terms.origin.json,
            ]),
            "revocation": .known([
                "cancelled_at_ms": .optional(revoked.cancelledAt), "reason": .optional(revoked.reason),
                "origin": facts.revocation.origin.json,
            ]),
            "ownership": .word(facts.ownership, \.raw),
            "app_account_token": .word(facts.appAccountToken, \.self),
            "price": facts.price.map { price in
                .known([
                    "milliunits": .optional(price.value.milliunits), "currency": .string(price.value.currency),
                    "origin": price.origin.json,
                ])
            } ?? .null,
            "refunded": .share(facts.revocationPercentage), "refund_shown": .share(facts.refundShown),
            "refund_retracted_at_ms": .optional(refundRetractedAt),
        ])
    }

    init(_ stored: JSONValue, of key: PurchaseKey, asOf: Instant, transactionIDs: [String], version: Int64) throws {
        let facts = PurchaseFacts(
            key: key, asOf: asOf, transactionIDs: Set(transactionIDs.map { TransactionID($0) }),
            terms: try Fact(stored.member("terms")) { terms in
                PurchaseTerms(
                    purchasedAt: Instant(milliseconds: try terms.integer("purchased_at_ms")),
                    quantity: Int(try terms.integer("quantity")),
                    transactionID: TransactionID(try terms.text("transaction_id")),
                    isOriginal: try terms.flagIfPresent("is_original") ?? false)
            },
            revocation: try Fact(stored.member("revocation")) { revocation in
                Revocation(
                    cancelledAt: try revocation.instantIfPresent("cancelled_at_ms"),
                    reason: try revocation.textIfPresent("reason"))
            },
            ownership: try stored["ownership"].map { try Fact($0) { Ownership(raw: try $0.text("word")) } },
            appAccountToken: try stored["app_account_token"].map { try Fact($0) { try $0.text("word") } },
            price: try stored["price"].map { price in
                try Fact(price) {
                    Price(milliunits: try $0.integerIfPresent("milliunits"), currency: try $0.text("currency"))
                }
            },
            revocationPercentage: try Fact(share: stored["refunded"]),
            refundShown: try Fact(share: stored["refund_shown"]))
        self.init(
            facts: facts, version: version, refundRetractedAt: try stored.instantIfPresent("refund_retracted_at_ms"))
    }
}

extension Fact<Int> {
    fileprivate init?(share stored: JSONValue?) throws {
        guard let stored else { return nil }
        try self.init(stored) { Int(try $0.integer("percentage")) }
    }
}

extension Fact {
    fileprivate init(_ stored: JSONValue, _ value: (JSONValue) throws -> Value) throws {
        self.init(try value(stored), origin: try FactOrigin(stored.member("origin")))
    }
}

extension Retraction {
    var json: JSONValue {
        .known([
            "transaction_id": .string(transactionID.text), "what": .string(what.rawValue), "end_ms": .optional(end),
            "since_ms": .integer(since.milliseconds),
        ])
    }

    /// Returns nil where the word is of a later program.
    init?(_ stored: JSONValue) throws(NotJSON) {
        guard let what = What(rawValue: try stored.text("what")) else { return nil }
        self.init(
            of: TransactionID(try stored.text("transaction_id")), what, end: try stored.instantIfPresent("end_ms"),
            since: Instant(milliseconds: try stored.integer("since_ms")))
    }
}

extension Sale {
    /// What signed transactions state of the sale of a period.
    var json: JSONValue {
        .known([
            "plan": .optional(plan), "payment_number": .optional(payment?.number),
            "payments": .optional(payment?.total),
            "term_ends_at_ms": .optional(payment?.termEndsAt), "term_price": .optional(payment?.termPrice),
            "seats": .optional(seats?.count), "revoked_seats": .optional(seats?.revoked),
            "one_of_several": isOneOfSeveral ? true : nil, "revocation_type": .optional(revocationType),
        ])
    }

    init(_ stored: JSONValue) throws(NotJSON) {
        self.init(
            plan: try stored.textIfPresent("plan"), isOneOfSeveral: try stored.flagIfPresent("one_of_several") ?? false,
            revocationType: try stored.textIfPresent("revocation_type"))
        if let number = try stored.integerIfPresent("payment_number"),
            let total = try stored.integerIfPresent("payments"),
            let termEndsAt = try stored.instantIfPresent("term_ends_at_ms")
        {
            payment = Payment(
                number: Int(number), total: Int(total), termEndsAt: termEndsAt,
                termPrice: try stored.integerIfPresent("term_price"))
        }
        if let count = try stored.integerIfPresent("seats") {
            seats = Seats(count: Int(count), revoked: Int(try stored.integerIfPresent("revoked_seats") ?? 0))
        }
    }
}

extension SaleStanding {
    /// How the newest period is paid, and what of its sale counts for the subscription now.
    var json: JSONValue {
        .known([
            "plan": .optional(plan), "payment_number": .optional(paymentNumber), "payments": .optional(payments),
            "term_ends_at_ms": .optional(termEndsAt), "seats": .optional(seats),
        ])
    }
}
