/// The row of `pending_renewal_info`: what the store intends, or why it stopped.
struct PendingRenewal: Sendable {
    let bundleID: String
    let customer: Customer

    func write(to json: inout JSONWriter) {
        let life = customer.life
        guard let head = life.periods.last else { return }
        json.object { json in
            json.text("auto_renew_product_id", life.nextProduct.identifier(in: bundleID))
            json.text("product_id", head.product.identifier(in: bundleID))
            json.text("original_transaction_id", customer.ids.originalTransactionID)
            json.text("auto_renew_status", life.renewalIsOn ? "1" : "0")
            if let intent = life.expirationIntent { json.text("expiration_intent", String(intent)) }
            switch life.phase {
            case .subscribed: break
            case .retrying: json.text("is_in_billing_retry_period", "1")
            case .ended(let intent, _):
                if intent != nil { json.text("is_in_billing_retry_period", "0") }
            }
            // The grace fields stay when grace is over, until a charge succeeds.
            if let graceUntil = life.graceUntil { json.date("grace_period_expires_date", graceUntil) }
        }
    }
}

extension Life {
    /// Apple's number for why the subscription ended or is in retry.
    var expirationIntent: Int? {
        switch phase {
        case .subscribed: nil
        case .retrying: 2
        case .ended(let intent, _): intent
        }
    }

    var graceUntil: Moment? {
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
