/// A customer's request that Apple refund a transaction.
package struct RefundRequest: Sendable {
    /// Apple's `consumptionRequestReason`.
    package enum Reason: String, Codable, Sendable, CaseIterable {
        /// The customer did not mean to buy.
        case unintended = "UNINTENDED_PURCHASE"
        /// The customer did not get what was bought.
        case fulfilment = "FULFILLMENT_ISSUE"
        /// The customer did not like it.
        case unsatisfied = "UNSATISFIED_WITH_PURCHASE"
        /// The law gives the right.
        case legal = "LEGAL"
        /// Anything else.
        case other = "OTHER"
    }

    let transactionID: String
    let reason: Reason?
    let at: StoreTime
    var declinedAt: StoreTime?
}

extension Account {
    mutating func requestRefund(_ action: CustomerAction) throws(ActionRefused) {
        guard let id = action.transactionID ?? newestTransactionID, hasTransaction(id) else {
            throw ActionRefused("there is no such transaction")
        }
        refundRequests.append(RefundRequest(transactionID: id, reason: action.requestReason, at: now))
    }

    mutating func declineRefund(_ action: CustomerAction) throws(ActionRefused) {
        let open = refundRequests.lastIndex { request in
            request.declinedAt == nil && (action.transactionID ?? request.transactionID) == request.transactionID
        }
        guard let open else { throw ActionRefused("there is no request for a refund") }
        refundRequests[open].declinedAt = now
    }

    mutating func setAccountToken(_ action: CustomerAction) throws(ActionRefused) {
        guard let id = action.transactionID, let token = action.accountToken else {
            throw ActionRefused("set_account_token needs a transaction_id and an app_account_token")
        }
        if let place = period(id) {
            lives[place.subscription].setToken(token)
        } else if let number = purchaseNumber(of: id) {
            purchases.purchases[number].order.buyer.token = token
        } else {
            throw ActionRefused("there is no such transaction")
        }
    }

    private var newestTransactionID: String? {
        let period = begun.compactMap { life in
            life.periods.last.map { (at: $0.bookedAt, id: life.ids.transactionID(of: $0.ordinal)) }
        }
        let bought = purchases.purchases.filter { $0.bookedAt <= now }
            .map { (at: $0.bookedAt, id: ids.purchase($0.ordinal)) }
        return (period + bought).max { $0.at < $1.at }?.id
    }
}

extension Life {
    fileprivate mutating func setToken(_ token: AccountToken) {
        buyer.token = token
        for number in periods.indices { periods[number].buyer.token = token }
    }
}
