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
        await writeTally()
        guard let settled else {
            throw LedgerError(.mismatch, "The answer about receipt \(receipt) could not be settled; see the log.")
        }
        return settled
    }
}
