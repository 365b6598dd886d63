import Foundation

/// The receipts the store writes, in Base64.
extension World {
    /// Returns the first receipt of the customer's device.
    func receipt(of account: Account) -> String {
        receipt(of: account, creation: account.firstReceiptCreation, restore: account.script.hasRestored ? 1 : 0)
    }

    /// Returns the newest receipt the store has written.
    func latestReceipt(of account: Account) -> String {
        receipt(of: account, creation: account.newestReceiptCreation, restore: account.script.hasRestored ? 1 : 0)
    }

    func receipt(
        of account: Account, creation: StoreTime, restore: Int, _ kind: DeviceReceipt = .dated
    ) -> String {
        var identity = ReceiptIdentity(
            customer: account.index, creation: creation, environment: account.environment, restore: restore)
        identity.isForeign = kind == .foreign
        identity.isDisguised = kind == .disguised
        if account.script.sendsLegacyReceipts || kind == .undated, let life = account.begun.first,
            let period = life.periods.last(where: { $0.bookedAt <= creation })
        {
            identity.form = .legacy
            let bytes = codec.encodeLegacy(identity, period: period, life: life, bundleID: bundleID)
            return Data(bytes).base64EncodedString()
        }
        let payload = ReceiptPayload(bundleID: bundleID(of: identity), account: account, identity: identity)
        return Data(codec.encode(identity) { payload.write(to: &$0) }).base64EncodedString()
    }

    /// Returns the bundle id of the app of a receipt.
    func bundleID(of identity: ReceiptIdentity) -> String { identity.isForeign ? "\(bundleID).other" : bundleID }

    /// Returns the token the app passes with the first customer's purchases, if it passes one.
    func accountToken(of account: Account) -> String? {
        account.script.hasAccountToken ? account.ids.accountToken(seed: population.seed) : nil
    }

    /// Returns the token in a row that this customer bought: the one of the purchase, else the first customer's own.
    func token(of buyer: Buyer, _ account: Account) -> String? {
        if let token = buyer.token { return token.text }
        switch buyer.seat {
        case .first: return accountToken(of: account)
        case .second: return nil
        }
    }
}
