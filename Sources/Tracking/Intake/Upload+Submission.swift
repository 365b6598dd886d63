import AppStore
import Ledger
import Subscriptions

extension Upload {
    /// Creates the upload of a submission. Throws `ReceiptDataError` for data that is not a receipt, `LedgerError` for
    /// an invalid customer id and for an imported receipt that names another app.
    init(_ submission: Submission, app: App) throws {
        if let customer = submission.customer { try Self.requireValidCustomerID(customer) }
        let receipt = try ReceiptData(normalising: submission.receipt)
        self.init(
            appID: app.id, customer: submission.customer, receipt: receipt.bytes, imported: submission.imported,
            order: submission.order, storefront: submission.storefront,
            priceMilliunits: submission.priceMilliunits, currency: submission.currency, expiresAt: submission.expiresAt,
            provisional: submission.provisional)
        if submission.imported { try readLocally(receipt, app: app) }
    }

    /// Reads the receipt itself. Its contents may refuse the upload and decide its place in the queue, but never grant.
    private mutating func readLocally(_ receipt: ReceiptData, app: App) throws {
        guard let local = LocalReading(of: receipt.bytes).receipt else { return }
        if let other = local.bundleID, local.isOfAnotherApp(than: app.bundleID.text) {
            throw LedgerError(.invalid, "The receipt is for \(other.printable), not for \(app.bundleID).")
        }
        expiresAt = expiresAt ?? local.latestExpiry.map(Instant.init(milliseconds:))
        guard local.store == .sandbox else { return }
        provisional?.environment = .sandbox
        if !app.sandboxAllowed { provisional = nil }
    }
}

extension String {
    /// The text in a form safe for a terminal: the creator of the receipt chose it.
    fileprivate var printable: String {
        String(prefix(255).map { $0.isASCII && !($0.asciiValue.map { $0 < 0x20 || $0 == 0x7F } ?? true) ? $0 : "?" })
    }
}
