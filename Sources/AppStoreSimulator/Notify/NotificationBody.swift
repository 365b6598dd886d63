import Synchronization

/// The bodies of notifications, written from the account as it was when the occasion arose.
extension Simulator {
    /// Returns the text of `signedPayload`; throws what signing throws.
    func signedPayload(of made: MadeNotification) throws -> String {
        let pen = try pen()
        let occasion = made.occasion
        return try pen.text { json in
            try json.object { json in
                json.text("notificationType", occasion.name.type)
                if let subtype = occasion.name.subtype { json.text("subtype", subtype) }
                json.text("notificationUUID", made.uuid)
                if case .summary(let key) = occasion.source, let done = support.withLock({ $0.massExtensions[key] }) {
                    json.object("summary") { write(done, to: &$0) }
                } else {
                    try json.object("data") { try writeData(of: occasion, to: &$0, pen) }
                }
                json.text("version", "2.0")
                json.number("signedDate", occasion.at.milliseconds)
            }
        }
    }

    /// Writes the `data` of a notification of version 2.
    private func writeData(of occasion: NotificationOccasion, to json: inout JSONWriter, _ pen: SigningPen) throws {
        json.appOfNotification(options.bundleID, at: occasion.environment)
        guard let account = occasion.account.flatMap({ world.account($0, asOf: occasion.at) }) else { return }
        json.text("bundleVersion", AnswerBody.appVersion)
        guard let id = occasion.transactionID else { return }
        let life = account.period(id).map { account.lives[$0.subscription] }
        if let life { json.number("status", Int64(life.status(at: occasion.at).rawValue)) }
        if case .request(let number) = occasion.source, account.refundRequests.indices.contains(number),
            let reason = account.refundRequests[number].reason
        {
            json.text("consumptionRequestReason", reason.rawValue)
        }
        if let transaction = SignedTransaction.one(id, of: account, in: world) {
            json.text("signedTransactionInfo", try pen.transaction(transaction, at: occasion.at))
        }
        if let life {
            let renewal = SignedRenewal(life: life, account: account, world: world)
            json.text("signedRenewalInfo", try pen.renewal(renewal, at: occasion.at))
        }
    }

    /// Writes the `summary` of an extension for all.
    private func write(_ done: SupportBook.MassExtension, to json: inout JSONWriter) {
        json.text("requestIdentifier", done.requestID)
        json.appOfNotification(options.bundleID, at: done.environment)
        json.text("productId", done.productID)
        if !done.countries.isEmpty {
            json.array("storefrontCountryCodes") { json in
                for country in done.countries { json.text(country) }
            }
        }
        json.number("succeededCount", Int64(done.succeeded))
        json.number("failedCount", Int64(done.failed))
    }

    /// Returns the body that is posted; nil where the form has no such notification.
    func body(of made: MadeNotification, _ version: NotificationOptions.Version) throws -> [UInt8]? {
        switch version {
        case .first: return firstVersionBody(of: made)
        case .second:
            let text = try signedPayload(of: made)
            return JSONWriter.object(reserving: text.utf8.count + 32) { $0.text("signedPayload", text) }
        }
    }
}

extension JSONWriter {
    /// Writes which app, in which environment, a notification is about.
    fileprivate mutating func appOfNotification(_ bundleID: String, at environment: StoreEnvironment) {
        text("environment", environment.rawValue)
        if environment == .production { number("appAppleId", AnswerBody.appID) }
        text("bundleId", bundleID)
    }
}

/// Notifications of version 1: unsigned, with the shared secret and a receipt.
extension Simulator {
    /// Returns the body of version 1; nil where that version has no such notification.
    func firstVersionBody(of made: MadeNotification) -> [UInt8]? {
        let occasion = made.occasion
        guard let type = occasion.name.firstVersion, let index = occasion.account,
            let account = world.account(index, asOf: occasion.at)
        else { return nil }
        let life = account.lives.first { $0.ids.originalTransactionID == occasion.originalTransactionID }
        let identity = ReceiptIdentity(
            customer: account.index, creation: account.newestReceiptCreation, environment: account.environment)
        let answer = AnswerBody(world: world, account: account, identity: identity, excludesOldTransactions: false)
        return JSONWriter.object(reserving: 8192) { json in
            json.text("notification_type", type)
            json.text("password", sharedSecret)
            json.text("environment", occasion.environment == .production ? "PROD" : "Sandbox")
            json.text("bid", options.bundleID)
            json.text("bvrs", AnswerBody.appVersion)
            if let life { write(life, renewalChangedAt: occasion, to: &json) }
            json.object("unified_receipt") { answer.writeUnifiedReceipt(to: &$0) }
        }
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

/// A notification that the store made, and how sending it went.
struct MadeNotification: Sendable {
    let sequence: Int
    let uuid: String
    let occasion: NotificationOccasion
    let isDropped: Bool
    var attempts: [(at: StoreTime, result: SendResult)] = []
}

/// Apple's `sendAttemptResult`.
enum SendResult: String, Sendable {
    case success = "SUCCESS"
    case timedOut = "TIMED_OUT"
    case noResponse = "NO_RESPONSE"
    case socketIssue = "SOCKET_ISSUE"
    case prematureClose = "PREMATURE_CLOSE"
    case invalidResponse = "INVALID_RESPONSE"
    case otherStatus = "UNSUCCESSFUL_HTTP_RESPONSE_CODE"
}

/// One attempt to send a notification.
struct NotificationDelivery: Sendable {
    /// Hours of a month of 720 between an attempt and the next one; then Apple gives up.
    private static let retryHours: [Double] = [1, 12, 24, 48, 72]

    let sequence: Int
    let dueAt: StoreTime
    /// From 0.
    let attempt: Int
    /// Whether it is the second copy of one that arrives twice.
    var isCopy = false

    /// Returns the attempt after this one, if it failed. The sandbox tries once.
    func next(at now: StoreTime, _ environment: StoreEnvironment, scale: TimeScale) -> NotificationDelivery? {
        guard environment == .production, attempt < Self.retryHours.count, !isCopy else { return nil }
        let wait = scale.monthMilliseconds * Self.retryHours[attempt] / 720
        return NotificationDelivery(sequence: sequence, dueAt: now + max(10, Int64(wait)), attempt: attempt + 1)
    }
}
