/// Type and subtype of a notification ("notificationType", "subtype").
struct NotificationName: Sendable, Equatable {
    let type: String
    let subtype: String?

    init(_ type: String, _ subtype: String? = nil) {
        self.type = type
        self.subtype = subtype
    }

    /// The name of an event of a subscription; nil where Apple sends nothing, or has sent it with another event.
    init?(_ happened: LifeEvent, of life: Life) {
        switch happened.kind {
        case .purchased, .trialStarted, .offerStarted: self.init("SUBSCRIBED", "INITIAL_BUY")
        case .resubscribed: self.init("SUBSCRIBED", "RESUBSCRIBE")
        case .renewed, .converted, .changedAtRenewal: self.init("DID_RENEW")
        case .recovered: self.init("DID_RENEW", "BILLING_RECOVERY")
        case .billingFailed:
            // A term has no grace period.
            let isPayment = happened.ordinal.map { life.periods[$0].payment != nil } ?? false
            self.init("DID_FAIL_TO_RENEW", life.script.hasGrace && !isPayment ? "GRACE_PERIOD" : nil)
        case .graceEnded: self.init("GRACE_PERIOD_EXPIRED")
        case .lapsed: self.init("EXPIRED", Self.reason(of: happened.expirationIntent))
        case .renewalEnabled: self.init("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_ENABLED")
        case .renewalDisabled: self.init("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED")
        case .upgraded, .crossgraded: self.init("DID_CHANGE_RENEWAL_PREF", "UPGRADE")
        case .downgradeScheduled, .crossgradeScheduled, .planSwitchScheduled:
            self.init("DID_CHANGE_RENEWAL_PREF", "DOWNGRADE")
        case .changeWithdrawn: self.init("DID_CHANGE_RENEWAL_PREF")
        case .offerRedeemed: self.init("OFFER_REDEEMED")
        case .priceIncreasePending: self.init("PRICE_INCREASE", "PENDING")
        case .priceIncreaseAccepted: self.init("PRICE_INCREASE", "ACCEPTED")
        case .extended: self.init("RENEWAL_EXTENDED")
        case .refunded: self.init("REFUND")
        case .seatsAdded: self.init("DID_CHANGE_RENEWAL_PREF", "INCREASE_QUANTITY")
        case .seatsReduced: self.init("DID_CHANGE_RENEWAL_PREF", "DECREASE_QUANTITY")
        case .seatsRefunded: self.init("REFUND", "SEATS")
        case .refundReversed: self.init("REFUND_REVERSED")
        case .revoked: self.init("REVOKE")
        case .graceStarted, .accountDeleted: return nil
        }
    }

    private static func reason(of intent: Int?) -> String? {
        switch intent {
        case 1: "VOLUNTARY"
        case 2: "BILLING_RETRY"
        case 3: "PRICE_INCREASE"
        case 4: "PRODUCT_NOT_FOR_SALE"
        default: nil
        }
    }

    /// The `notification_type` of version 1; nil where that version has none.
    var firstVersion: String? {
        switch (type, subtype) {
        case ("SUBSCRIBED", "INITIAL_BUY"): "INITIAL_BUY"
        case ("SUBSCRIBED", _), ("DID_CHANGE_RENEWAL_PREF", "UPGRADE"): "INTERACTIVE_RENEWAL"
        case ("DID_RENEW", "BILLING_RECOVERY"): "DID_RECOVER"
        case ("PRICE_INCREASE", "PENDING"): "PRICE_INCREASE_CONSENT"
        case ("DID_RENEW", _), ("DID_FAIL_TO_RENEW", _), ("DID_CHANGE_RENEWAL_STATUS", _),
            ("DID_CHANGE_RENEWAL_PREF", _), ("REFUND", _), ("REVOKE", _), ("CONSUMPTION_REQUEST", _):
            type
        default: nil
        }
    }
}
