/// Something a customer, a bank or Apple does at one instant.
package struct CustomerAction: Codable, Sendable {
    /// What is done.
    package enum Kind: String, Codable, Sendable, CaseIterable {
        /// Apple refunds the period that runs, or an older one.
        case refund
        /// The newest refund is taken back.
        case reverseRefund = "reverse_refund"
        /// The customer turns renewal off.
        case disableRenewal = "disable_renewal"
        /// The customer turns renewal on.
        case enableRenewal = "enable_renewal"
        /// The card fails from now on.
        case failBilling = "fail_billing"
        /// The card works again; a subscription in retry is charged at once.
        case recover
        /// To the higher level, at once.
        case upgrade
        /// To another product at the next renewal.
        case downgrade
        /// To another product of the same level: at once when it lasts as long, else at the next renewal.
        case crossgrade
        /// The price goes up and the customer is asked; without an answer the subscription ends.
        case raisePrice = "raise_price"
        /// The customer agrees to the higher price.
        case acceptPrice = "accept_price"
        /// The product is not for sale at the next renewal.
        case withdrawProduct = "withdraw_product"
        /// The subscription ends at the next renewal for a reason Apple does not give.
        case breakOff = "break_off"
        /// The customer takes an offer: for the next renewals, or to come back.
        case redeemOffer = "redeem_offer"
        /// A lapsed customer buys again.
        case resubscribe
        /// The account disappears.
        case deleteAccount = "delete_account"
        /// The organiser stops sharing.
        case revokeFamily = "revoke_family"
        /// The running period ends later.
        case extend
        /// A one-time purchase.
        case buy
        /// Apple refunds the newest one-time purchase.
        case refundPurchase = "refund_purchase"
    }

    /// What is done.
    package var kind: Kind
    /// For `refund`: renewal stays on (Apple usually turns it off).
    package var keepsRenewal: Bool?
    /// For `refund`: 0 or nil is the period that runs, 1 the one before.
    package var periodsAgo: Int?
    /// For `refund`: Apple's `cancellation_reason`, 0 or 1.
    package var reason: Int?
    /// For `downgrade` and `resubscribe`: the product; a default is chosen without it.
    package var product: SubscriptionProduct?
    /// For `redeem_offer` and `resubscribe`: the offer; `redeem_offer` takes a promotional one without it.
    package var offer: PeriodOffer?
    /// For `buy`: what; coins without it.
    package var item: OneTimeProduct?
    /// Which subscription of the account, from 0; the first without it.
    package var subscription: Int?
    /// For `extend`: seconds, rounded up to whole ones; a quarter of the period without it.
    package var seconds: Double?

    /// Makes an action with its defaults.
    package init(_ kind: Kind) {
        self.kind = kind
    }

    enum CodingKeys: String, CodingKey {
        case kind = "action"
        case keepsRenewal = "keep_renewal"
        case periodsAgo = "periods_ago"
        case reason, product, seconds, offer, item, subscription
    }
}

/// An action that makes no sense in the customer's present situation. Nothing was changed.
package struct ActionRefused: Error, Sendable, CustomStringConvertible {
    /// Why, in a short sentence.
    package let description: String

    init(_ description: String) {
        self.description = description
    }
}
