import AppStore
package import Ledger
import Subscriptions

extension Tracker {
    /// Stores receipts for the schedule to check; an invalid one never affects the others.
    ///
    /// With `part` the ledger records in the same transaction how far the import of a file is, and how many of these
    /// submissions were invalid.
    package func store(
        _ submissions: [Submission], completing part: ImportedPart? = nil
    ) async throws -> [Result<StoredUpload, any Error>] {
        let apps = Dictionary(uniqueKeysWithValues: try await ledger.apps.all().map { ($0.bundleID, $0) })
        let uploads = submissions.map { submission in
            Result { () throws -> Upload in
                guard let app = apps[submission.bundleID] else {
                    throw LedgerError(
                        .notFound, "No app has the bundle id \(submission.bundleID); add it with `perennial app add`.")
                }
                return try Upload(submission, app: app)
            }
        }
        let good = uploads.compactMap { try? $0.get() }
        var part = part
        part?.badLines += Int64(uploads.count - good.count)
        var stored = try await storeEach(good, completing: part).makeIterator()
        return uploads.map { upload in
            upload.flatMap { _ in
                stored.next() ?? .failure(LedgerError(.mismatch, "The receipt was not stored."))
            }
        }
    }

    /// Stores all uploads at once, or one by one when the database refuses a value of one of them.
    private func storeEach(
        _ uploads: [Upload], completing part: ImportedPart?
    ) async throws -> [Result<StoredUpload, any Error>] {
        do {
            return try await ledger.intake.store(uploads, completing: part).map { .success($0) }
        } catch  where error.storageFailure?.isAboutAValue == true {
            var stored: [Result<StoredUpload, any Error>] = []
            for upload in uploads {
                do {
                    stored += try await ledger.intake.store([upload]).map { .success($0) }
                } catch  where error.storageFailure?.isAboutAValue == true {
                    stored.append(.failure(error))
                }
            }
            // The next run simply finds again the uploads that are stored before their part is marked.
            var part = part
            part?.badLines += Int64(stored.count { if case .failure = $0 { true } else { false } })
            _ = try await ledger.intake.store([], completing: part)
            return stored
        }
    }
}

extension Upload {
    /// Creates the upload of a submission. Throws `ReceiptDataError` for data that is not a receipt, `LedgerError` for
    /// an invalid customer id and for an imported receipt that names another app.
    init(_ submission: Submission, app: App) throws {
        try Self.requireCustomer(submission.customer)
        let receipt = try ReceiptData(normalising: submission.receipt)
        self.init(
            appID: app.id, customer: submission.customer, receipt: receipt.bytes, imported: submission.imported,
            storefront: submission.storefront, priceMilliunits: submission.priceMilliunits,
            currency: submission.currency, expiresAt: submission.expiresAt, provisional: submission.provisional)
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
