/// The signature of an offer as the app hands it to the device. Apple knows the other values from the purchase.
package struct HandedSignature: Codable, Sendable {
    /// The id of the key that signed.
    package var keyID: String
    /// A UUID that the server made for this signature.
    package var nonce: String
    /// When the server signed, in milliseconds since 1970.
    package var timestamp: Int64
    /// The signature: ECDSA in the form of DER, in Base64.
    package var signature: String

    enum CodingKeys: String, CodingKey {
        case nonce, timestamp, signature
        case keyID = "key_id"
    }
}

/// The check of the signature of an offer that a purchase carries.
extension Simulator {
    /// Refuses an action whose signature Apple would refuse.
    func checkSignature(of action: CustomerAction, on index: Int) throws(ActionRefused) {
        guard action.signature != nil || action.jws != nil else { return }
        guard action.isPromotional else { throw ActionRefused("only a promotional offer has a signature") }
        guard let account = world.account(index, at: now) else { return }
        let subscription = try account.subscriptionNumber(action)
        let life = account.lives[subscription]
        guard let product = action.product ?? life.periods.last?.product else {
            throw ActionRefused("nothing was bought")
        }
        let productID = product.identifier(in: world.bundleID)
        let offerID = action.offerID ?? PeriodOffer.promotionalOfferID
        if let handed = action.signature {
            let signature = OfferSignature(
                bundleID: world.bundleID, keyID: handed.keyID, productID: productID, offerID: offerID,
                accountToken: action.accountToken?.text ?? "", nonce: handed.nonce, timestamp: handed.timestamp,
                signature: handed.signature)
            if let fault = signature.fault(by: offerKeys, app: world.bundleID, at: clock.now) {
                throw ActionRefused("Apple refuses the offer: \(fault)")
            }
        }
        if let jws = action.jws {
            try check(jws, product: productID, offer: offerID, of: account)
        }
    }

    private func check(
        _ jws: String, product: String, offer: String, of account: Account
    ) throws(ActionRefused) {
        let claims = try OfferJWS(compact: jws).claims(by: offerKeys, app: world.bundleID, at: clock.now)
        switch claims.aud {
        case .promotionalOffer: break
        case .introductoryEligibility: throw ActionRefused("Apple refuses the offer: aud is not promotional-offer")
        }
        guard claims.productId == product, claims.offerIdentifier == offer else {
            throw ActionRefused("Apple refuses the offer: it is for another product or offer")
        }
        guard claims.transactionId.map({ account.hasTransaction($0) }) ?? true else {
            throw ActionRefused("Apple refuses the offer: the transaction is another customer's")
        }
    }
}

extension CustomerAction {
    fileprivate var isPromotional: Bool {
        switch kind {
        case .redeemOffer: (offer ?? .promotional) == .promotional
        case .resubscribe: offer == .promotional
        case .refund, .reverseRefund, .disableRenewal, .enableRenewal, .failBilling, .recover, .upgrade, .downgrade,
            .crossgrade, .raisePrice, .acceptPrice, .withdrawProduct, .breakOff, .subscribe, .deleteAccount,
            .revokeFamily, .extend, .buy, .approve, .decline, .finish, .refundPurchase, .reversePurchaseRefund,
            .requestRefund, .declineRefund, .setAccountToken, .addSeats, .reduceSeats, .refundSeats, .claimSeat,
            .revokeSeat, .switchPlan:
            false
        }
    }
}
