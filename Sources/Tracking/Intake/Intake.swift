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
        var stored = try await ledger.store(uploads.compactMap { try? $0.get() }).makeIterator()
        return uploads.map { upload in
            upload.flatMap { _ in
                stored.next().map { .success($0) } ?? .failure(LedgerError(.mismatch, "The receipt was not stored."))
            }
        }
    }

    /// Asks Apple about one stored receipt now and settles the answer.
    ///
    /// Throws `LedgerError` `notFound`, or `busy` while another process asks.
    public func check(_ receipt: ReceiptID) async throws -> Settled {
        let worker = try await ledger.startWorker(host: ProcessIdentity.host, process: ProcessIdentity.number)
        let claim = try await ledger.claim(receipt, for: worker, leaseSeconds: options.leaseSeconds)
        let settled = try await check([claim], by: worker)
        try await ledger.beat(worker, stopped: true)
        _ = try await ledger.sequenceFeed()
        guard let settled = settled.first else {
            throw LedgerError(.mismatch, "The check of receipt \(receipt) left no result.")
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
