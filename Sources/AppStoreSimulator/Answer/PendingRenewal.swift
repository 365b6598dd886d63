/// The row of `pending_renewal_info`: the store's plan for the next renewal, or why renewals stopped.
struct PendingRenewal: Sendable {
    let bundleID: String
    let life: Life

    func write(to json: inout JSONWriter) {
        guard let head = life.periods.last else { return }
        json.object { json in
            json.text("auto_renew_product_id", life.nextPaidProduct.identifier(in: bundleID))
            json.text("product_id", head.product.identifier(in: bundleID))
            json.rowNumber("original_transaction_id", life.ids.originalTransactionID)
            json.rowNumber("auto_renew_status", life.nextPaymentIsOn ? "1" : "0")
            if let intent = life.expirationIntent { json.text("expiration_intent", String(intent)) }
            switch life.phase {
            case .subscribed: break
            case .retrying: json.text("is_in_billing_retry_period", "1")
            case .ended(let intent, _):
                if intent != nil { json.text("is_in_billing_retry_period", "0") }
            }
            // The grace fields stay after the grace period, until a charge succeeds.
            if let graceUntil = life.graceUntil { json.date("grace_period_expires_date", graceUntil) }
            if let consent = life.priceConsent {
                json.text("price_consent_status", consent.status)
                json.text("price_increase_status", consent.status)
            }
            guard life.renewalIsOn else { return }
            switch life.offerBalance?.offer {
            case .promotional:
                json.text("promotional_offer_id", life.offerBalance?.id ?? PeriodOffer.promotionalOfferID)
            case .offerCode: json.text("offer_code_ref_name", PeriodOffer.offerCodeName)
            case .freeTrial, .payAsYouGo, .payUpFront, nil: break
            }
        }
    }
}

extension Life {
    /// Apple's code for why the subscription ended or is in retry.
    var expirationIntent: Int? {
        switch phase {
        case .subscribed: nil
        case .retrying: 2
        case .ended(let intent, _): intent
        }
    }

    var graceUntil: StoreTime? {
        switch phase {
        case .subscribed: nil
        case .retrying(let graceUntil, _, _), .ended(_, let graceUntil): graceUntil
        }
    }

    var isInRetry: Bool {
        switch phase {
        case .retrying: true
        case .subscribed, .ended: false
        }
    }
}
