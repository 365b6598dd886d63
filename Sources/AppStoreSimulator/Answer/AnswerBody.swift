/// The body of an answer with status 0: the unified receipt, as Apple prints it.
struct AnswerBody: Sendable {
    let bundleID: String
    let customer: Customer
    /// When the receipt that was asked about was made; `in_app` is frozen there.
    let creation: Moment
    let request: Moment
    /// Base64 of the newest receipt.
    let latestReceipt: String
    let excludesOldTransactions: Bool

    private static let appID: Int64 = 1_500_000_001
    private static let sandboxFirstDownload = Moment(milliseconds: 1_375_340_400_000)

    var bytes: [UInt8] {
        var json = JSONWriter(reserving: 4096 + customer.life.periods.count * 1024 + latestReceipt.utf8.count)
        json.object { json in
            json.number("status", 0)
            json.text("environment", customer.environment.rawValue)
            json.object("receipt") { receipt(&$0) }
            json.array("latest_receipt_info") { latestRows(&$0) }
            json.text("latest_receipt", latestReceipt)
            json.array("pending_renewal_info") { PendingRenewal(bundleID: bundleID, customer: customer).write(to: &$0) }
        }
        return json.bytes
    }

    private func receipt(_ json: inout JSONWriter) {
        let isSandbox = customer.environment == .sandbox
        json.text("receipt_type", isSandbox ? "ProductionSandbox" : "Production")
        json.number("adam_id", isSandbox ? 0 : Self.appID)
        json.number("app_item_id", isSandbox ? 0 : Self.appID)
        json.text("bundle_id", bundleID)
        json.text("application_version", "42")
        json.number("download_id", isSandbox ? 0 : 503_000_000_000_000_000 + Int64(customer.index) * 2 + 1)
        json.number("version_external_identifier", isSandbox ? 0 : 870_000_001)
        json.date("receipt_creation_date", creation.wholeSecond)
        json.date("request_date", request)
        json.date("original_purchase_date", isSandbox ? Self.sandboxFirstDownload : firstDownload)
        json.text("original_application_version", isSandbox ? "1.0" : "40")
        json.array("in_app") { json in
            for row in deviceRows { json.object { row.write(to: &$0) } }
        }
    }

    /// The app was on the device a minute before the first purchase.
    private var firstDownload: Moment { (customer.life.periods.first?.purchase ?? creation) - 60_000 }

    private var deviceRows: [TransactionRow] {
        let subscriptions = customer.life.periods.filter { $0.bookedAt <= creation }
            .map { TransactionRow(period: $0, of: customer, bundleID: bundleID, seen: .onDevice(creation)) }
        return lifetimeRows(until: creation) + subscriptions
    }

    /// Production lists the newest first. The sandbox still answers in the old, ascending order.
    private func latestRows(_ json: inout JSONWriter) {
        let newest = excludesOldTransactions ? customer.life.periods.suffix(1) : customer.life.periods[...]
        let booked = newest.map { TransactionRow(period: $0, of: customer, bundleID: bundleID, seen: .byServer) }
        let rows =
            switch customer.environment {
            case .production: booked.reversed() + lifetimeRows(until: request)
            case .sandbox: lifetimeRows(until: request) + booked
            }
        for row in rows { json.object { row.write(to: &$0) } }
    }

    private func lifetimeRows(until moment: Moment) -> [TransactionRow] {
        guard let lifetime = customer.lifetime, lifetime.purchase <= moment else { return [] }
        return [TransactionRow(lifetime: lifetime, of: customer, bundleID: bundleID)]
    }
}
