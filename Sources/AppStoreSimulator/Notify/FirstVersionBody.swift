/// Notifications of version 1: unsigned, with the shared secret and a receipt.
extension Simulator {
    func firstVersionBody(of made: MadeNotification) -> [UInt8]? {
        let occasion = made.occasion
        guard let type = occasion.name.firstVersion, let index = occasion.account,
            let account = world.account(index, asOf: occasion.at)
        else { return nil }
        let life = account.lives.first { $0.ids.originalTransactionID == occasion.originalTransactionID }
        var json = JSONWriter(reserving: 8192)
        json.object { json in
            json.text("notification_type", type)
            json.text("password", sharedSecret)
            json.text("environment", occasion.environment == .production ? "PROD" : "Sandbox")
            json.text("bid", options.bundleID)
            json.text("bvrs", AnswerBody.appVersion)
            if let life { write(life, renewalChangedAt: occasion, to: &json) }
            json.object("unified_receipt") { world.writeUnifiedReceipt(of: account, to: &$0) }
        }
        return json.bytes
    }

    private func write(_ life: Life, renewalChangedAt occasion: NotificationOccasion, to json: inout JSONWriter) {
        json.text("auto_renew_product_id", life.nextPaidProduct.identifier(in: options.bundleID))
        json.text("auto_renew_status", life.nextPaymentIsOn ? "true" : "false")
        if occasion.name.type == "DID_CHANGE_RENEWAL_STATUS" {
            json.date("auto_renew_status_change_date", occasion.at)
        }
        if let intent = life.expirationIntent { json.number("expiration_intent", Int64(intent)) }
        json.text("original_transaction_id", life.ids.originalTransactionID)
    }
}

extension World {
    fileprivate func writeUnifiedReceipt(of account: Account, to json: inout JSONWriter) {
        let receipt = latestReceipt(of: account)
        let identity = ReceiptIdentity(
            customer: account.index, creation: account.newestReceiptCreation, environment: account.environment)
        AnswerBody(
            bundleID: bundleID, account: account, identity: identity, token: { self.token(of: $0, account) },
            latestReceipt: receipt, excludesOldTransactions: false
        ).writeUnifiedReceipt(to: &json)
    }
}
