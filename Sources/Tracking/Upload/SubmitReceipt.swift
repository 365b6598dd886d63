import AppStore
package import Subscriptions

extension Tracker {
    /// Stores a receipt and asks Apple about it immediately; when Apple cannot be asked now, the answer is `pending`
    /// and the schedule continues. Throws `ReceiptDataError` for data that is not a receipt, `UploadRefusal` for what
    /// is of another app or not Apple's, `LedgerError` for an unknown app or an invalid customer id, or when `limits`
    /// are exceeded.
    package func submit(
        _ submission: Submission, within limits: SubmissionLimits? = nil
    ) async throws -> SubmissionAnswer {
        let app = try await ledger.apps.app(submission.bundleID)
        let upload: Upload
        do {
            upload = try await Upload(submission, app: app, verifier: signedTexts)
        } catch let refusal as UploadRefusal {
            await count([refusal], of: app)
            throw refusal
        }
        guard let stored = try await ledger.intake.store([upload], newReceiptsMax: limits?.newReceiptsMax).first else {
            throw LedgerError(.mismatch, "The receipt was not stored; run `perennial migrate`.")
        }
        let end = limits.map { ContinuousClock.now + .seconds($0.answerSeconds) }
        let work = "check an uploaded receipt"
        let sender = UploadSender(customer: stored.customer, orderID: upload.order?.id)
        do {
            let settled = try await checkOrJoin(stored.receiptID, of: app, for: sender, until: end)
            conditions.clear(.work(work))
            return .settled(settled, customer: stored.customer)
        } catch let error as LedgerError where error.kind == .busy {
            let held = try await ledger.claims.secondsHeld(stored.receiptID)
            return .pending(stored.receiptID, reason: error.message, heldSeconds: held)
        } catch {
            guard let failure = error.storageFailure else { throw error }
            failed(to: work, error)
            return .pending(stored.receiptID, reason: failure.message, heldSeconds: nil)
        }
    }
}

/// The limits of one submission.
package struct SubmissionLimits: Sendable {
    /// The longest wait for Apple's answer, in seconds.
    package var answerSeconds: Double = 10
    /// The most new receipts of one customer in an hour.
    package var newReceiptsMax = 10

    /// Creates the limits of production.
    package init() {}
}

/// A receipt as a caller sends it, by HTTP, by command or in an import, unchecked; the ledger stores it as an `Upload`.
package struct Submission: Sendable {
    /// The app of the receipt.
    package var bundleID: BundleID
    /// The operator's own id of the customer; nil where a device sends the receipt for an order.
    package var customer: String?
    /// The order that the receipt is sent for.
    package var order: OrderReference?
    /// What the device sends.
    package var subject: Subject
    /// Whether it comes from an import, which never takes a live subscription from its owner.
    package var imported: Bool
    /// The storefront the device saw.
    package var storefront: String?
    /// The price the device saw, in thousandths of the currency's unit.
    package var priceMilliunits: Int64?
    /// The currency of that price.
    package var currency: String?
    /// The expiry as far as the sender knows it; decides only how soon Apple is asked about an import.
    package var expiresAt: Instant?
    /// What the operator grants the customer until Apple is asked.
    package var provisional: Provisional?

    /// What a device sends, as it comes.
    package enum Subject: Sendable, Hashable {
        /// A receipt in base64 in any form, not yet normalised.
        case receipt(String)
        /// A signed transaction of StoreKit 2 in compact form, not yet verified.
        case signedTransaction(String)
        /// The id of a transaction.
        case transactionID(String)

        /// Chooses the only subject that is given; nil for none and for several.
        package init?(receipt: String?, signedTransaction: String?, transactionID: String?) {
            switch (receipt, signedTransaction, transactionID) {
            case (let receipt?, nil, nil): self = .receipt(receipt)
            case (nil, let text?, nil): self = .signedTransaction(text)
            case (nil, nil, let id?): self = .transactionID(id)
            default: return nil
            }
        }
    }

    /// Creates a submission of a receipt.
    package init(
        bundleID: BundleID, customer: String?, receipt: String, imported: Bool = false, order: OrderReference? = nil,
        provisional: Provisional? = nil
    ) {
        self.init(
            bundleID: bundleID, customer: customer, subject: .receipt(receipt), imported: imported, order: order,
            provisional: provisional)
    }

    package init(
        bundleID: BundleID, customer: String?, subject: Subject, imported: Bool = false, order: OrderReference? = nil,
        storefront: String? = nil, priceMilliunits: Int64? = nil, currency: String? = nil, expiresAt: Instant? = nil,
        provisional: Provisional? = nil
    ) {
        self.bundleID = bundleID
        self.customer = customer
        self.order = order
        self.subject = subject
        self.imported = imported
        self.storefront = storefront
        self.priceMilliunits = priceMilliunits
        self.currency = currency
        self.expiresAt = expiresAt
        self.provisional = provisional
    }
}

/// The result of a submission.
package enum SubmissionAnswer: Sendable {
    /// Apple was asked and the answer is settled, for the customer under their present id, if the submission named one.
    case settled(Settled, customer: String?)
    /// The receipt is stored, but not checked, for a reason. It cannot be asked about for `heldSeconds`; nil: it can.
    case pending(ReceiptID, reason: String, heldSeconds: Int?)
}

extension Upload {
    /// The longest id of a transaction, in characters; Apple's have up to 20.
    static let transactionIDCharactersMax = 64

    /// Creates the upload of a submission. Throws as ``Tracker/submit(_:within:)``, and where a server key is missing.
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
            let isPlain = id.utf8.allSatisfy { $0.isDigit || $0.isLetter || $0 == UInt8(ascii: "-") }
            guard isPlain, (1...Self.transactionIDCharactersMax).contains(id.utf8.count) else {
                throw LedgerError(
                    .invalid,
                    "A transaction id has 1 to \(Self.transactionIDCharactersMax) digits, letters and hyphens.")
            }
            (form, receipt, transactionID) = (.transactionID, Array(id.utf8), TransactionID(id))
        }
    }

    private static func requireServerKey(of app: App) throws(LedgerError) {
        guard app.serverKey == nil else { return }
        throw LedgerError(.exists, ServerKeyText.missing(of: app.bundleID))
    }

    /// Takes a signed transaction, once its signature and what it is about are verified.
    private mutating func take(_ text: [UInt8], of app: App, verifier: SignedTextVerifier) async throws {
        let signed: SignedText
        do throws(SignedTextRefusal) {
            signed = try await verifier.verify(text)
        } catch { throw UploadRefusal(sentence: "The signed transaction is refused. \(error.sentence)") }
        guard let subject = SignedSubject(payload: signed.payload),
            let environment = StoreEnvironment(named: subject.environment)
        else { throw UploadRefusal(sentence: "The signed text is no transaction of the App Store.") }
        guard subject.bundleID == app.bundleID.text else {
            throw UploadRefusal(sentence: "The signed transaction is of another app than \(app.bundleID).")
        }
        guard environment == .production || app.sandboxAllowed else {
            throw UploadRefusal(
                sentence: "The signed transaction is of the sandbox, whose purchases do not count here.")
        }
        (form, receipt, self.environment) = (.signedTransaction, text, environment)
        transactionID = subject.transactionID
        expiresAt = expiresAt ?? SignedTransaction(signed)?.row.expiresAt
        if environment == .sandbox { provisional?.environment = .sandbox }
    }

    /// Reads the receipt itself, which may refuse the upload, and place an imported one in the queue, never grant.
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
    package let sentence: String
    /// The app that a receipt names instead, in printable characters; nil where that is not why.
    package var otherApp: BundleID?

    package var description: String { sentence }
}

extension String {
    /// The text in a form safe for a terminal: the creator of the receipt chose it.
    fileprivate var printable: String {
        String(prefix(255).map { $0.isASCII && !($0.asciiValue.map { $0 < 0x20 || $0 == 0x7F } ?? true) ? $0 : "?" })
    }
}

extension Tracker {
    /// Stores receipts for the schedule to check; an invalid one never affects the others. With `part` the same
    /// transaction records how far the import of a file is, and the lines of the submissions that were invalid.
    package func store(
        _ submissions: [Submission], completing part: ImportedPart? = nil
    ) async throws -> [Result<StoredUpload, any Error>] {
        let apps = Dictionary(uniqueKeysWithValues: try await ledger.apps.all().map { ($0.bundleID, $0) })
        var uploads: [Result<Upload, any Error>] = []
        uploads.reserveCapacity(submissions.count)
        for submission in submissions { uploads.append(await upload(of: submission, among: apps)) }
        for (bundleID, refused) in Dictionary(grouping: zip(submissions, uploads), by: { $0.0.bundleID }) {
            guard let app = apps[bundleID] else { continue }
            let refusals = refused.compactMap { _, upload -> UploadRefusal? in
                if case .failure(let error) = upload { error as? UploadRefusal } else { nil }
            }
            await count(refusals, of: app)
        }
        let good = uploads.compactMap { try? $0.get() }
        var part = part
        part?.leaveOut(uploads)
        var stored = try await storeEach(good, completing: part).makeIterator()
        return uploads.map { upload in
            upload.flatMap { _ in stored.next() ?? .failure(LedgerError(.mismatch, "The receipt was not stored.")) }
        }
    }

    private func upload(of submission: Submission, among apps: [BundleID: App]) async -> Result<Upload, any Error> {
        guard let app = apps[submission.bundleID] else {
            return .failure(LedgerError.unknownApp(submission.bundleID))
        }
        do {
            return .success(try await Upload(submission, app: app, verifier: signedTexts))
        } catch { return .failure(error) }
    }

    /// Counts the apps that refused receipts name instead of `app`, so that a mistyped bundle id is seen.
    func count(_ refusals: [UploadRefusal], of app: App) async {
        let named = Dictionary(refusals.compactMap(\.otherApp).map { ($0, 1) }, uniquingKeysWith: +)
        guard !named.isEmpty else { return }
        metrics.refused(named.values.reduce(0, +), of: app.bundleID)
        await attempt("count refused bundle ids") { try await ledger.intake.countRefused(named, of: app) }
    }

    /// Stores all uploads at once, or one by one when the database refuses a value of one of them.
    private func storeEach(
        _ uploads: [Upload], completing part: ImportedPart?
    ) async throws -> [Result<StoredUpload, any Error>] {
        do {
            return try await ledger.intake.store(uploads, completing: part).map { .success($0) }
        } catch let error where error.storageFailure?.isAboutAValue == true {
            var stored: [Result<StoredUpload, any Error>] = []
            var part = part
            for upload in uploads {
                do {
                    stored += try await ledger.intake.store([upload]).map { .success($0) }
                } catch let error where error.storageFailure?.isAboutAValue == true {
                    stored.append(.failure(error))
                }
            }
            part?.leaveOut(stored)
            // The next run simply finds again the uploads that are stored before their part is marked.
            _ = try await ledger.intake.store([], completing: part)
            return stored
        }
    }
}
