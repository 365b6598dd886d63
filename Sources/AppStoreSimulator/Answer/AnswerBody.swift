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
