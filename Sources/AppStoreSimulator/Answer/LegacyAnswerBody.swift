/// The response for a transaction receipt of iOS 6: one row as `receipt`, the newest as `latest_receipt_info`, the
/// renewal at the top level, no environment and no request date. Status 21006 means that the subscription has ended.
struct LegacyAnswerBody: Sendable {
    let bundleID: String
    let account: Account
    let identity: ReceiptIdentity
    let latestReceipt: String

    func rendered() -> RenderedAnswer {
        guard let life = account.begun.first, let head = life.periods.last else {
            return RenderedAnswer(whole: StatusCheck.accountGone.errorBody(at: account.environment))
        }
        let own = life.periods.last { $0.bookedAt <= identity.creation } ?? head
        var json = JSONWriter(reserving: 4096)
        json.object { json in
            json.number("status", life.phase == .subscribed ? 0 : 21006)
            json.number("auto_renew_status", life.nextPaymentIsOn ? 1 : 0)
            json.text("auto_renew_product_id", life.nextPaidProduct.identifier(in: bundleID))
            if let intent = life.expirationIntent {
                json.text("expiration_intent", String(intent))
                json.text("is_in_billing_retry_period", life.isInRetry ? "1" : "0")
            }
            json.object("receipt") { row(own, of: life, to: &$0) }
            switch life.phase {
            case .subscribed:
                json.object("latest_receipt_info") { row(head, of: life, to: &$0) }
                json.text("latest_receipt", latestReceipt)
            case .retrying, .ended: json.object("latest_expired_receipt_info") { row(head, of: life, to: &$0) }
            }
        }
        return RenderedAnswer(whole: json.bytes)
    }

    private func row(_ period: Period, of life: Life, to json: inout JSONWriter) {
        json.date("original_purchase_date", life.start + 2000)
        json.date("purchase_date", period.purchase)
        json.legacyDate("expires_date", period.expires)
        json.text("quantity", "1")
        json.text("product_id", period.product.identifier(in: bundleID))
        json.text("transaction_id", life.ids.transactionID(of: period.ordinal))
        json.text("original_transaction_id", life.ids.originalTransactionID)
        json.text("web_order_line_item_id", life.ids.webOrderLineItemID(of: period.ordinal))
        json.text("item_id", "950000001")
        json.text("bid", bundleID)
        json.text("bvrs", "1.0")
        json.text("unique_identifier", String(repeating: "0", count: 40))
        json.text("is_trial_period", period.isTrial ? "true" : "false")
        if let cancellation = period.cancellation {
            json.date("cancellation_date", cancellation.at)
            json.number("cancellation_reason", Int64(cancellation.reason))
        }
    }
}
