import AppStore
import Ledger
package import Subscriptions

extension Upload {
    /// The longest id of a transaction, in characters; Apple's have up to 20.
    static let transactionIDCharactersMax = 64

    /// Creates the upload of a submission. Throws `ReceiptDataError` for data that is not a receipt, `UploadRefusal` for a
    /// receipt or a signed transaction of another app and for a text that is not Apple's, `LedgerError` for an invalid id
    /// and where the app has no server key to ask by.
    init(_ submission: Submission, app: App, verifier: SignedTextVerifier) async throws {
        if let customer = submission.customer { try Self.requireValidCustomerID(customer) }
        self.init(
            appID: app.id, customer: submission.customer, receipt: [], imported: submission.imported,
            order: submission.order, storefront: submission.storefront,
            priceMilliunits: submission.priceMilliunits, currency: submission.currency, expiresAt: submission.expiresAt,
            provisional: submission.provisional)
        switch submission.subject {
        case .receipt(let text):
            let data = try ReceiptData(normalising: text)
            receipt = data.bytes
            try readLocally(data, app: app)
        case .signedTransaction(let text):
            try Self.requireServerKey(of: app)
            try await take(Array(text.utf8), of: app, verifier: verifier)
        case .transactionID(let id):
            try Self.requireServerKey(of: app)
            guard (1...Self.transactionIDCharactersMax).contains(id.utf8.count), id.utf8.allSatisfy(Self.isOfAnID)
            else {
                throw LedgerError(
                    .invalid,
                    "A transaction id has 1 to \(Self.transactionIDCharactersMax) digits, letters and hyphens.")
            }
            (form, receipt, transactionID) = (.transactionID, Array(id.utf8), TransactionID(id))
        }
    }

    private static func isOfAnID(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    private static func requireServerKey(of app: App) throws(LedgerError) {
        guard app.serverKey == nil else { return }
        throw LedgerError(.exists, Tracker.noServerKey(app.bundleID))
    }

    /// Takes a signed transaction, once its signature and what it is about are verified.
    private mutating func take(_ text: [UInt8], of app: App, verifier: SignedTextVerifier) async throws {
        let signed: SignedText
        do throws(SignedTextRefusal) {
            signed = try await verifier.verify(text)
        } catch {
            throw UploadRefusal(sentence: "The signed transaction is refused. \(error.sentence)")
        }
        guard let transaction = SignedTransaction(signed),
            let environment = StoreEnvironment(named: transaction.environment)
        else { throw UploadRefusal(sentence: "The signed text is no transaction of the App Store.") }
        guard transaction.bundleID == app.bundleID.text else {
            throw UploadRefusal(sentence: "The signed transaction is of another app than \(app.bundleID).")
        }
        guard environment == .production || app.sandboxAllowed else {
            throw UploadRefusal(
                sentence: "The signed transaction is of the sandbox, whose purchases do not count here.")
        }
        (form, receipt, self.environment) = (.signedTransaction, text, environment)
        transactionID = TransactionID(transaction.transactionID)
        expiresAt = expiresAt ?? transaction.expiresAt.map(Instant.init(milliseconds:))
        if environment == .sandbox { provisional?.environment = .sandbox }
    }

    /// Reads the receipt itself. Its contents may refuse the upload, and decide the place of an imported one in the queue,
    /// but never grant.
    private mutating func readLocally(_ receipt: ReceiptData, app: App) throws {
        guard let local = LocalReading(of: receipt.bytes).receipt else { return }
        if let other = local.otherApp(than: app.bundleID.text)?.printable {
            throw UploadRefusal(
                sentence: "The receipt is for \(other), not for \(app.bundleID).", otherApp: BundleID(other))
        }
        saysSandbox = local.store == .sandbox
        guard imported else { return }
        expiresAt = expiresAt ?? local.latestExpiry.map(Instant.init(milliseconds:))
        guard saysSandbox else { return }
        provisional?.environment = .sandbox
        if !app.sandboxAllowed { provisional = nil }
    }
}

/// An upload that is refused before anything is stored: what was sent is not Apple's, or is about something else.
package struct UploadRefusal: Error, Sendable, CustomStringConvertible {
    /// One sentence.
    package let sentence: String
    /// The app that a receipt names instead, in printable characters; nil where that is not why.
    package var otherApp: BundleID?

    /// The sentence.
    package var description: String { sentence }
}

extension String {
    /// The text in a form safe for a terminal: the creator of the receipt chose it.
    fileprivate var printable: String {
        String(prefix(255).map { $0.isASCII && !($0.asciiValue.map { $0 < 0x20 || $0 == 0x7F } ?? true) ? $0 : "?" })
    }
}
