/// The body of a response with status 0: the unified receipt, as Apple prints it.
struct AnswerBody: Sendable {
    /// One row of `in_app` or `latest_receipt_info`.
    private enum Row {
        case purchase(OneTimePurchase)
        case period(Period, of: Life)
    }

    /// The most periods of a subscription in one response; the newest are kept.
    static let rowsMax = 400

    let world: World
    let account: Account
    /// The receipt in the request; its `in_app` is frozen at its creation.
    let identity: ReceiptIdentity
    let excludesOldTransactions: Bool

    static let appVersion = "42"
    /// The most rows of a notification of version 1.
    private static let notifiedRowsMax = 100
    static let appID: Int64 = 1_500_000_001
    private static let sandboxFirstDownload = StoreTime(milliseconds: 1_375_340_400_000)

    private var bundleID: String { world.bundleID(of: identity) }
    private var quirks: Set<ByteQuirk> { account.script.quirks }
    private var isSandbox: Bool { account.environment == .sandbox }

    /// Renders the answer of verifyReceipt, with a gap for the request date.
    func rendered() -> RenderedAnswer {
        let latestReceipt = world.latestReceipt(of: account)
        let periods = account.lives.reduce(0) { $0 + min($1.periods.count, Self.rowsMax) }
        var json = JSONWriter(reserving: 4096 + periods * 1200 + latestReceipt.utf8.count)
        json.swapsTypes = quirks.contains(.swappedTypes)
        var gap = 0
        json.object { json in
            json.plainNumber("status", 0)
            if !quirks.contains(.missingKeys) { json.text("environment", account.environment.rawValue) }
            json.object("receipt") { gap = receipt(&$0) }
            json.array("latest_receipt_info") { latestRows(&$0) }
            json.text("latest_receipt", latestReceipt)
            pendingRows(&json)
        }
        return RenderedAnswer(json.bytes, gap: gap)
    }

    /// Writes the members of `unified_receipt` of a notification, which has the newest rows only.
    func writeUnifiedReceipt(to json: inout JSONWriter) {
        json.text("environment", account.environment.rawValue)
        json.text("latest_receipt", world.latestReceipt(of: account))
        json.array("latest_receipt_info") { json in
            write((bookedRows.reversed() + purchaseRows).prefix(Self.notifiedRowsMax), to: &json)
        }
        pendingRows(&json)
        json.number("status", 0)
    }

    /// Writes `pending_renewal_info`, a row for each subscription.
    private func pendingRows(_ json: inout JSONWriter) {
        guard !account.begun.isEmpty else { return }
        json.array("pending_renewal_info") { json in
            for life in account.begun { life.writePendingRenewal(to: &json, bundleID: bundleID) }
        }
    }

    /// Writes the receipt and returns the position of the request date.
    private func receipt(_ json: inout JSONWriter) -> Int {
        json.text("receipt_type", account.environment.receiptType)
        json.plainNumber("adam_id", isSandbox ? 0 : Self.appID)
        json.plainNumber("app_item_id", isSandbox ? 0 : Self.appID)
        json.text("bundle_id", bundleID)
        json.text("application_version", Self.appVersion)
        switch (quirks.contains(.nullDownload), isSandbox) {
        case (true, _): json.null("download_id")
        case (false, true): json.number("download_id", 0)
        case (false, false): json.number("download_id", 503_000_000_000_000_001 + Int64(account.index) * 2)
        }
        json.plainNumber("version_external_identifier", isSandbox ? 0 : 870_000_001)
        json.date("receipt_creation_date", identity.creation.wholeSecond)
        let gap = json.bytes.count
        json.date("original_purchase_date", isSandbox ? Self.sandboxFirstDownload : account.start - 60_000)
        if !quirks.contains(.missingKeys) {
            json.text("original_application_version", isSandbox ? "1.0" : "40")
        }
        json.array("in_app") { write(deviceRows, in: identity, to: &$0) }
        return gap
    }

    private var deviceRows: [Row] {
        let periods = account.begun.flatMap { life in
            life.periods.filter { $0.bookedAt <= identity.creation }.suffix(Self.rowsMax)
                .map { Row.period($0, of: life) }
        }
        return account.purchases.purchases.filter { account.holds($0, in: identity) }.map { Row.purchase($0) } + periods
    }

    /// Returns the newest rows first for production. The sandbox still uses the old, ascending order.
    private func latestRows(_ json: inout JSONWriter) {
        var rows: [Row] = isSandbox ? purchaseRows + bookedRows : bookedRows.reversed() + purchaseRows
        if quirks.contains(.doubledRow), let first = rows.first { rows.append(first) }
        if quirks.contains(.unorderedRows) {
            var numbers = SeededGenerator(seed: UInt64(account.index), stream: UInt64(rows.count))
            rows.shuffle(using: &numbers)
        }
        write(rows, to: &json)
    }

    private var purchaseRows: [Row] { account.listedPurchases.map { Row.purchase($0) } }

    /// The rows of all subscriptions together, in the order the store booked them.
    private var bookedRows: [Row] {
        let count = excludesOldTransactions ? 1 : Self.rowsMax
        let lives = account.begun
        var booked = lives.flatMap { life in life.periods.suffix(count).map { (period: $0, life: life) } }
        if lives.count > 1 { booked.sort { $0.period.bookedAt < $1.period.bookedAt } }
        return booked.map { Row.period($0.period, of: $0.life) }
    }

    /// Writes rows as the device saw them when its receipt was made, or without a receipt as the server sees them.
    private func write(_ rows: some Sequence<Row>, in receipt: ReceiptIdentity? = nil, to json: inout JSONWriter) {
        for row in rows {
            json.object { json in
                switch row {
                case .purchase(let purchase): write(purchase, in: receipt, to: &json)
                case .period(let period, let life): write(period, of: life, in: receipt, to: &json)
                }
            }
        }
    }

    /// Writes the row of a one-time purchase.
    private func write(_ purchase: OneTimePurchase, in receipt: ReceiptIdentity?, to json: inout JSONWriter) {
        // A restore gives the device's row its own id and its own date.
        let restoredAt = receipt.flatMap { account.restored(purchase, in: $0) }
        let restore = restoredAt == nil ? 0 : identity.restore
        json.rowNumber("quantity", String(purchase.order.quantity.count))
        json.text("product_id", purchase.product.identifier(in: bundleID))
        json.text("transaction_id", account.ids.purchase(purchase.ordinal, restore: restore))
        json.rowNumber("original_transaction_id", account.ids.purchase(purchase.ordinal))
        json.date("purchase_date", restoredAt?.wholeSecond ?? purchase.at)
        json.date("original_purchase_date", purchase.at)
        json.rowBoolean("is_trial_period", false)
        json.text("in_app_ownership_type", "PURCHASED")
        if receipt == nil, let token = world.token(of: purchase.buyer, account) {
            json.text("app_account_token", token)
        }
        guard let refundedAt = purchase.refund(asOf: receipt?.creation ?? account.now) else { return }
        json.date("cancellation_date", refundedAt)
        json.rowNumber("cancellation_reason", "0")
    }

    /// Writes the row of a period.
    private func write(_ period: Period, of life: Life, in receipt: ReceiptIdentity?, to json: inout JSONWriter) {
        let (ids, ownership, restore) = (life.ids, life.script.ownership, receipt?.restore ?? 0)
        let leavesKeysOut = quirks.contains(.missingKeys)
        json.rowNumber("quantity", "1")
        json.text("product_id", period.product.identifier(in: bundleID))
        // A restore gives the device's rows their own ids and their own date.
        json.text("transaction_id", ids.transactionID(of: period.ordinal, restore: restore))
        json.rowNumber("original_transaction_id", ids.originalTransactionID)
        json.date("purchase_date", period.purchase)
        json.date("original_purchase_date", restore > 0 ? identity.creation.wholeSecond : life.originalPurchase)
        json.date("expires_date", receipt.map { period.expires(asOf: $0.creation) } ?? period.expires)
        if !life.script.isMember { json.text("web_order_line_item_id", ids.webOrderLineItemID(of: period.ordinal)) }
        json.rowBoolean("is_trial_period", period.isTrial)
        if !leavesKeysOut { json.rowBoolean("is_in_intro_offer_period", period.offer?.isPaidIntroduction ?? false) }
        if receipt == nil, !leavesKeysOut { json.text("subscription_group_identifier", period.product.groupID) }
        if !leavesKeysOut || ownership != "PURCHASED" { json.text("in_app_ownership_type", ownership) }
        if let redeemed = period.redeemed, redeemed.offer == .promotional {
            json.text("promotional_offer_id", redeemed.id)
        }
        if receipt == nil, period.offer == .offerCode { json.text("offer_code_ref_name", PeriodOffer.offerCodeName) }
        if receipt == nil, !life.script.isMember, let token = world.token(of: period.buyer, account) {
            json.text("app_account_token", token)
        }
        let cancellation = if let receipt { period.cancellation(asOf: receipt.creation) } else { period.cancellation }
        let showsUpgrade = receipt == nil && cancellation?.isUpgrade ?? false
        // Upgraded rows of the sandbox were observed without a cancellation date.
        if let cancellation, !(showsUpgrade && life.environment == .sandbox) {
            json.date("cancellation_date", cancellation.at)
            json.rowNumber("cancellation_reason", String(cancellation.reason))
        }
        if showsUpgrade { json.rowBoolean("is_upgraded", true) }
    }
}

/// The response for a transaction receipt of iOS 6: one row as `receipt`, the newest as `latest_receipt_info`, the
/// renewal at the top level, no environment and no request date. Status 21006 means that the subscription has ended.
extension AnswerBody {
    /// Renders the answer about a receipt of iOS 6.
    func renderedLegacy() -> RenderedAnswer {
        guard let life = account.begun.first else {
            return RenderedAnswer(whole: StatusCheck.accountGone.errorBody(at: account.environment))
        }
        let head = life.head
        let own = life.periods.last { $0.bookedAt <= identity.creation } ?? head
        let bytes = JSONWriter.object(reserving: 4096) { json in
            json.number("status", life.phase == .subscribed ? 0 : 21006)
            json.number("auto_renew_status", life.nextPaymentIsOn ? 1 : 0)
            json.text("auto_renew_product_id", life.nextPaidProduct.identifier(in: bundleID))
            if let intent = life.expirationIntent {
                json.text("expiration_intent", String(intent))
                json.text("is_in_billing_retry_period", life.isInRetry ? "1" : "0")
            }
            json.object("receipt") { writeLegacy(own, of: life, to: &$0) }
            switch life.phase {
            case .subscribed:
                json.object("latest_receipt_info") { writeLegacy(head, of: life, to: &$0) }
                json.text("latest_receipt", world.latestReceipt(of: account))
            case .retrying, .ended:
                json.object("latest_expired_receipt_info") { writeLegacy(head, of: life, to: &$0) }
            }
        }
        return RenderedAnswer(whole: bytes)
    }

    /// Writes the one row that such an answer has of a period.
    private func writeLegacy(_ period: Period, of life: Life, to json: inout JSONWriter) {
        json.date("original_purchase_date", life.originalPurchase)
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

extension Life {
    /// Writes the row of `pending_renewal_info`: the store's plan for the next renewal, or why renewals stopped.
    func writePendingRenewal(to json: inout JSONWriter, bundleID: String) {
        json.object { json in
            json.text("auto_renew_product_id", nextPaidProduct.identifier(in: bundleID))
            json.text("product_id", head.product.identifier(in: bundleID))
            json.rowNumber("original_transaction_id", ids.originalTransactionID)
            json.rowNumber("auto_renew_status", nextPaymentIsOn ? "1" : "0")
            if let expirationIntent {
                json.text("expiration_intent", String(expirationIntent))
                json.text("is_in_billing_retry_period", isInRetry ? "1" : "0")
            }
            // The grace fields stay after the grace period, until a charge succeeds.
            if let graceUntil { json.date("grace_period_expires_date", graceUntil) }
            if let priceConsent {
                json.text("price_consent_status", String(priceConsent.rawValue))
                json.text("price_increase_status", String(priceConsent.rawValue))
            }
            guard renewalIsOn, let offerBalance else { return }
            switch offerBalance.offer {
            case .promotional: json.text("promotional_offer_id", offerBalance.id)
            case .offerCode: json.text("offer_code_ref_name", PeriodOffer.offerCodeName)
            case .freeTrial, .payAsYouGo, .payUpFront: break
            }
        }
    }
}

/// A rendered response with a gap for the request date, the only part that changes while nothing happens.
struct RenderedAnswer: Sendable {
    let head: [UInt8]
    /// What follows the request date; empty where a response has none.
    let tail: [UInt8]

    /// Creates a response that is always the same.
    init(whole bytes: [UInt8]) { (head, tail) = (bytes, []) }

    /// Creates a response whose request date goes before the byte at `gap`, after another member.
    init(_ bytes: [UInt8], gap: Int) { (head, tail) = (Array(bytes[..<gap]), Array(bytes[gap...])) }

    /// The number of bytes it occupies in the cache.
    var size: Int { head.count + tail.count }

    /// Returns the three forms of the request date, with the comma that separates them from the member before.
    func requestDate(_ now: StoreTime) -> [UInt8] {
        guard !tail.isEmpty else { return [] }
        var json = JSONWriter(reserving: 256, needsComma: true)
        json.date("request_date", now)
        return json.bytes
    }

    /// Returns the whole answer, with the request date in its gap.
    func bytes(requestedAt now: StoreTime) -> [UInt8] { head + requestDate(now) + tail }
}

/// An odd form observed in Apple's responses.
package enum ByteQuirk: String, Codable, Sendable, CaseIterable {
    /// Numbers where rows usually have strings, and strings where the receipt has numbers.
    case swappedTypes = "swapped_types"
    /// The rows of `latest_receipt_info` in no order.
    case unorderedRows = "unordered_rows"
    /// The newest row of `latest_receipt_info` twice.
    case doubledRow = "doubled_row"
    /// Some keys that are usually present are missing.
    case missingKeys = "missing_keys"
    /// `download_id` is null.
    case nullDownload = "null_download"
}
