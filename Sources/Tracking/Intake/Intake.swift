import AppStore
import Ledger
import Subscriptions

extension Tracker {
    /// Stores a receipt and asks Apple about it at once.
    ///
    /// Throws `ReceiptDataError` for what is no receipt, `LedgerError` for an unknown app or a bad customer id. What is
    /// stored stays stored: when Apple cannot be asked now, the answer is `pending` and the schedule goes on.
    public func submit(_ submission: Submission) async throws -> SubmissionAnswer {
        let app = try await ledger.app(submission.bundleID)
        let upload = try Upload(submission, app: app)
        guard let stored = try await ledger.store([upload]).first else {
            throw LedgerError(.mismatch, "The receipt was not stored; run `perennial migrate`.")
        }
        do {
            return .settled(try await check(stored.receiptID))
        } catch let error as LedgerError where error.kind == .busy {
            return .pending(stored.receiptID, reason: error.message)
        } catch let error as StorageError {
            return .pending(stored.receiptID, reason: error.message)
        }
    }

    /// Stores receipts for the schedule to ask about; a bad one never sinks the others.
    public func store(_ submissions: [Submission]) async throws -> [Result<StoredUpload, any Error>] {
        let apps = Dictionary(uniqueKeysWithValues: try await ledger.apps().map { ($0.bundleID, $0) })
        let uploads = submissions.map { submission in
            Result { () throws -> Upload in
                guard let app = apps[submission.bundleID] else {
                    throw LedgerError(
                        .notFound, "No app has the bundle id \(submission.bundleID); add it with `perennial app add`.")
                }
                return try Upload(submission, app: app)
            }
        }
        var stored = try await storeEach(uploads.compactMap { try? $0.get() }).makeIterator()
        return uploads.map { upload in
            upload.flatMap { _ in
                stored.next() ?? .failure(LedgerError(.mismatch, "The receipt was not stored."))
            }
        }
    }

    /// Stores all at once, or one by one when the database refuses a value of one of them.
    private func storeEach(_ uploads: [Upload]) async throws -> [Result<StoredUpload, any Error>] {
        do {
            return try await ledger.store(uploads).map { .success($0) }
        } catch let error as StorageError where error.isAboutAValue {
            var stored: [Result<StoredUpload, any Error>] = []
            for upload in uploads {
                do {
                    stored += try await ledger.store([upload]).map { .success($0) }
                } catch let error as StorageError where error.isAboutAValue {
                    stored.append(.failure(error))
                }
            }
            return stored
        }
    }

    /// Asks Apple about one stored receipt now, within the app's budget of calls, and settles the answer.
    ///
    /// Throws `LedgerError` `notFound`, or `busy` while another process asks or the app may not ask.
    public func check(_ receipt: ReceiptID) async throws -> Settled {
        let worker = try await identity.worker(of: ledger)
        let claim = try await ledger.claim(receipt, for: worker, leaseSeconds: options.leaseSeconds)
        guard try await ledger.takeBudget([(app: claim.app, calls: 1)])[claim.app.id] == 1 else {
            try await ledger.release([claim], of: worker)
            let why = claim.app.pause.map { "its checks are paused: \($0.reason)" } ?? "its budget of calls is used up."
            throw LedgerError(.busy, "Apple is not asked for \(claim.app.bundleID) now: \(why)")
        }
        let settled = try await check(claim, by: worker)
        do {
            try await ledger.sequenceFeed()
        } catch {
            logger.warning("events wait for their position in the feed: \(error)")
        }
        guard let settled else {
            throw LedgerError(.mismatch, "The answer about receipt \(receipt) could not be settled; see the log.")
        }
        return settled
    }
}

extension Upload {
    init(_ submission: Submission, app: App) throws {
        try Self.requireCustomer(submission.customer)
        self.init(
            appID: app.id, customer: submission.customer,
            receipt: try ReceiptData(normalising: submission.receipt).bytes, imported: submission.imported,
            storefront: submission.storefront, priceMilliunits: submission.priceMilliunits,
            currency: submission.currency)
    }
}

extension StorageError {
    /// SQLSTATE classes 22 and 23: a value that cannot be stored, whoever tries and however often.
    fileprivate var isAboutAValue: Bool {
        sqlState.map { $0.hasPrefix("22") || $0.hasPrefix("23") } ?? false
    }
}
