/// The body of a response with status 0: the unified receipt, as Apple prints it.
struct AnswerBody: Sendable {
    /// The most periods of a subscription in one response; the newest are kept.
    static let rowsMax = 400

    let bundleID: String
    let account: Account
    /// The receipt in the request; its `in_app` is frozen at its creation.
    let identity: ReceiptIdentity
    /// Returns the token in a row that a customer bought.
    let token: @Sendable (Buyer) -> String?
    /// Base64 of the newest receipt.
    let latestReceipt: String
    let excludesOldTransactions: Bool

    static let appVersion = "42"
    /// The most rows of a notification of version 1.
    private static let notifiedRowsMax = 100
    static let appID: Int64 = 1_500_000_001
    private static let sandboxFirstDownload = StoreTime(milliseconds: 1_375_340_400_000)

    private var quirks: Set<ByteQuirk> { account.script.quirks }
    private var isSandbox: Bool { account.environment == .sandbox }

    func rendered() -> RenderedAnswer {
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
        json.text("latest_receipt", latestReceipt)
        json.array("latest_receipt_info") { json in
            for row in (bookedRows.reversed() + purchaseRows).prefix(Self.notifiedRowsMax) {
                json.object { row.write(to: &$0) }
            }
        }
        pendingRows(&json)
        json.number("status", 0)
    }

    private func pendingRows(_ json: inout JSONWriter) {
        guard !account.begun.isEmpty else { return }
        json.array("pending_renewal_info") { json in
            for life in account.begun { PendingRenewal(bundleID: bundleID, life: life).write(to: &json) }
        }
    }

    /// Writes the receipt and returns the position of the request date.
    private func receipt(_ json: inout JSONWriter) -> Int {
        json.text("receipt_type", isSandbox ? "ProductionSandbox" : "Production")
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
        json.array("in_app") { json in
            for row in deviceRows { json.object { row.write(to: &$0) } }
        }
        return gap
    }

    private var deviceRows: [TransactionRow] {
        let subscriptions = account.begun.flatMap { life in
            life.periods.filter { $0.bookedAt <= identity.creation }.suffix(Self.rowsMax)
                .map { row($0, of: life, seen: .onDevice(identity)) }
        }
        let purchases = account.purchases.purchases.filter { account.holds($0, in: identity) }
            .map { TransactionRow(purchase: $0, of: account, seen: .onDevice(identity), bundleID: bundleID) }
        return purchases + subscriptions
    }

    /// Returns the newest rows first for production. The sandbox still uses the old, ascending order.
    private func latestRows(_ json: inout JSONWriter) {
        var rows =
            switch account.environment {
            case .production: bookedRows.reversed() + purchaseRows
            case .sandbox: purchaseRows + bookedRows
            }
        if quirks.contains(.doubledRow), let first = rows.first { rows.append(first) }
        if quirks.contains(.unorderedRows) {
            var numbers = SeededGenerator(seed: UInt64(account.index), stream: UInt64(rows.count))
            rows.shuffle(using: &numbers)
        }
        for row in rows { json.object { row.write(to: &$0) } }
    }

    private var purchaseRows: [TransactionRow] {
        account.listedPurchases.map { purchase in
            var row = TransactionRow(purchase: purchase, of: account, seen: .byServer, bundleID: bundleID)
            row.accountToken = token(purchase.buyer)
            return row
        }
    }

    /// The rows of all subscriptions together, in the order the store booked them.
    private var bookedRows: [TransactionRow] {
        let count = excludesOldTransactions ? 1 : Self.rowsMax
        let booked = account.begun.map { life in life.periods.suffix(count).map { (period: $0, life: life) } }
        guard booked.count > 1 else {
            return booked.flatMap { $0.map { row($0.period, of: $0.life, seen: .byServer) } }
        }
        return booked.flatMap { $0 }.sorted { $0.period.bookedAt < $1.period.bookedAt }
            .map { row($0.period, of: $0.life, seen: .byServer) }
    }

    private func row(_ period: Period, of life: Life, seen: TransactionRow.Seen) -> TransactionRow {
        var row = TransactionRow(period: period, of: life, bundleID: bundleID, seen: seen)
        row.leavesKeysOut = quirks.contains(.missingKeys)
        if case .byServer = seen, !life.script.isMember { row.accountToken = token(period.buyer) }
        return row
    }
}

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

/// A rendered response with a gap for the request date, the only part that changes while nothing happens.
struct RenderedAnswer: Sendable {
    let head: [UInt8]
    let tail: [UInt8]
    /// Whether the response has a request date; old receipts have none.
    let hasRequestDate: Bool

    /// Creates a response that is always the same.
    init(whole bytes: [UInt8]) {
        head = bytes
        tail = []
        hasRequestDate = false
    }

    /// Creates a response whose request date goes before the byte at `gap`, after another member.
    init(_ bytes: [UInt8], gap: Int) {
        head = Array(bytes[..<gap])
        tail = Array(bytes[gap...])
        hasRequestDate = true
    }

    /// The number of bytes it occupies in the cache.
    var size: Int { head.count + tail.count }

    /// Returns the three forms of the request date, with the comma that separates them from the member before.
    func requestDate(_ now: StoreTime) -> [UInt8] {
        guard hasRequestDate else { return [] }
        var json = JSONWriter(continuing: ())
        json.date("request_date", now)
        return json.bytes
    }

    /// Returns the whole body.
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
