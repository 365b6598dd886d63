import Subscriptions

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
