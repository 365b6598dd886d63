/// An action of a customer, a bank or Apple at one instant.
package struct CustomerAction: Codable, Sendable {
    package enum Kind: String, Codable, Sendable, CaseIterable {
        /// Apple refunds the running period, or an older one.
        case refund
        /// Apple reverses the newest refund.
        case reverseRefund = "reverse_refund"
        /// The customer turns renewal off.
        case disableRenewal = "disable_renewal"
        /// The customer turns renewal on.
        case enableRenewal = "enable_renewal"
        /// The card fails from now on.
        case failBilling = "fail_billing"
        /// The card works again; a subscription in retry is charged at once.
        case recover
        /// The customer moves to the higher level, at once.
        case upgrade
        /// The customer changes to another product at the next renewal.
        case downgrade
        /// The customer changes to another product of the level: at once if it is as long, else at the next renewal.
        case crossgrade
        /// The price rises and the customer is asked; without consent the subscription ends.
        case raisePrice = "raise_price"
        /// The customer agrees to the higher price.
        case acceptPrice = "accept_price"
        /// The product is not for sale at the next renewal.
        case withdrawProduct = "withdraw_product"
        /// The subscription ends at the next renewal for a reason Apple does not give.
        case breakOff = "break_off"
        /// The customer takes an offer for the next renewals, or to come back.
        case redeemOffer = "redeem_offer"
        /// A lapsed customer buys again.
        case resubscribe
        /// An account without a subscription of the group buys its first one.
        case subscribe
        /// The account disappears.
        case deleteAccount = "delete_account"
        /// The family organiser stops sharing.
        case revokeFamily = "revoke_family"
        /// The group or the organisation takes a seat away.
        case revokeSeat = "revoke_seat"
        /// An account without a subscription of the group gets a seat of a group.
        case claimSeat = "claim_seat"
        /// The customer chooses the other plan of a yearly product for the time after the term or the period.
        case switchPlan = "switch_plan"
        /// A group buys more seats at once.
        case addSeats = "add_seats"
        /// A group renews with fewer seats.
        case reduceSeats = "reduce_seats"
        /// Apple refunds some seats of a group.
        case refundSeats = "refund_seats"
        /// The end of the running period moves later.
        case extend
        /// The customer makes a one-time purchase.
        case buy
        /// The family organiser approves a purchase that waits.
        case approve
        /// The family organiser declines a purchase that waits.
        case decline
        /// The app finishes a transaction: Apple lists a consumable no longer.
        case finish
        /// Apple refunds a one-time purchase, the newest unless one is named.
        case refundPurchase = "refund_purchase"
        /// Apple reverses the refund of a one-time purchase, the newest unless one is named.
        case reversePurchaseRefund = "reverse_purchase_refund"
        /// The customer asks Apple for a refund of a transaction, the newest unless one is named.
        case requestRefund = "request_refund"
        /// Apple declines the newest request for a refund, or that of a transaction.
        case declineRefund = "decline_refund"
        /// The app's server sets the token of a purchase, or of a subscription and its renewals.
        case setAccountToken = "set_account_token"
    }

    package var kind: Kind
    /// For `refund`: renewal stays on (Apple usually turns it off).
    package var keepsRenewal: Bool?
    /// For `refund`: which period is refunded; 0 or nil is the running period, 1 the one before.
    package var periodsAgo: Int?
    /// For `refund`: Apple's `cancellation_reason`, 0 or 1.
    package var reason: Int?
    /// For `downgrade`, `subscribe` and `resubscribe`: the product; nil selects a default.
    package var product: SubscriptionProduct?
    /// For `redeem_offer`, `subscribe` and `resubscribe`: the offer; nil makes `redeem_offer` take a promotional one.
    package var offer: PeriodOffer?
    /// For `subscribe` and `resubscribe`: how a yearly product is paid; nil selects the customer's own plan.
    package var plan: BillingPlan?
    /// For `subscribe` and `claim_seat`: the seats of the group; for the actions about seats: how many, nil means one.
    package var seats: Int?
    /// For `buy`: the product; nil means coins.
    package var item: OneTimeProduct?
    /// The index of the subscription within the account, from 0; nil means 0, the first one.
    package var subscription: Int?
    /// For `extend`: by how many seconds the period ends later, rounded up; nil means a quarter of the period.
    package var seconds: Double?
    /// For `buy`: the number of pieces; nil means one.
    package var quantity: PurchaseQuantity?
    /// For `buy` and the purchases of subscriptions: the token the app passes.
    package var accountToken: AccountToken?
    /// For `buy`: whether the purchase waits for an approval.
    package var isDeferred: Bool?
    /// For `approve` and `decline`: the purchase that waits.
    package var pendingID: String?
    /// For `request_refund`: Apple's `consumptionRequestReason`; nil means that it is not known.
    package var requestReason: RefundRequest.Reason?
    /// For `finish`, the refunds, their requests and reversals: the transaction.
    package var transactionID: String?
    /// For a promotional offer: its id; nil means the store's own one.
    package var offerID: String?
    /// For a promotional offer: the signature that the app hands over. The offer is refused when Apple would refuse it.
    package var signature: HandedSignature?
    /// For a promotional offer: the signature as a JWS, which is checked in the same way.
    package var jws: String?
    /// The customer who acts; the name in the path of the control call decides it.
    var seat = Seat.first

    /// Creates an action of a kind, with every optional field nil.
    package init(_ kind: Kind) { self.kind = kind }

    enum CodingKeys: String, CodingKey {
        case kind = "action"
        case keepsRenewal = "keep_renewal"
        case periodsAgo = "periods_ago"
        case reason, product, plan, seats, seconds, offer, item, subscription, quantity, signature, jws
        case offerID = "offer_id"
        case accountToken = "app_account_token"
        case isDeferred = "deferred"
        case pendingID = "pending_id"
        case transactionID = "transaction_id"
        case requestReason = "request_reason"
    }
}

/// Each number has a limit, so that no sum with it overflows.
extension CustomerAction {
    private static let secondsMax = 90 * 86_400

    /// Reads the body of the control call, or the action of a step.
    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(try values.decode(Kind.self, forKey: .kind))
        keepsRenewal = try values.decodeIfPresent(Bool.self, forKey: .keepsRenewal)
        periodsAgo = try values.numberIfPresent(.periodsAgo, in: 0...Life.periodsMax)
        reason = try values.numberIfPresent(.reason, in: 0...1)
        product = try values.decodeIfPresent(SubscriptionProduct.self, forKey: .product)
        offer = try values.decodeIfPresent(PeriodOffer.self, forKey: .offer)
        plan = try values.decodeIfPresent(BillingPlan.self, forKey: .plan)
        seats = try values.numberIfPresent(.seats, in: 1...Seats.countMax)
        item = try values.decodeIfPresent(OneTimeProduct.self, forKey: .item)
        subscription = try values.numberIfPresent(.subscription, in: 0...AccountIDs.subscriptionsMax - 1)
        seconds = try values.numberIfPresent(.seconds, in: 0...Self.secondsMax)
        quantity = try values.decodeIfPresent(PurchaseQuantity.self, forKey: .quantity)
        accountToken = try values.decodeIfPresent(AccountToken.self, forKey: .accountToken)
        isDeferred = try values.decodeIfPresent(Bool.self, forKey: .isDeferred)
        pendingID = try values.decodeIfPresent(String.self, forKey: .pendingID)
        requestReason = try values.decodeIfPresent(RefundRequest.Reason.self, forKey: .requestReason)
        transactionID = try values.decodeIfPresent(String.self, forKey: .transactionID)
        offerID = try values.decodeIfPresent(String.self, forKey: .offerID)
        signature = try values.decodeIfPresent(HandedSignature.self, forKey: .signature)
        jws = try values.decodeIfPresent(String.self, forKey: .jws)
    }
}

extension CustomerAction {
    var buyer: Buyer { Buyer(seat: seat, token: accountToken) }
}

/// An error for an action that is invalid in the customer's present situation. It changed nothing.
package struct ActionRefused: Error, Sendable, CustomStringConvertible {
    /// The reason, in a short sentence.
    package let description: String

    init(_ description: String) { self.description = description }
}
