import AppStore
import Ledger
import Subscriptions

extension Tracker {
    /// Stores a receipt and asks Apple about it immediately.
    ///
    /// Throws `ReceiptDataError` for data that is not a receipt, `UploadRefusal` for what is of another app or not Apple's,
    /// `LedgerError` for an unknown app or an invalid customer id, or when `limits` are exceeded. A stored receipt stays stored: when Apple cannot be asked now, the
    /// answer is `pending` and the schedule continues.
    package func submit(_ submission: Submission, within limits: SubmissionLimits? = nil) async throws
        -> SubmissionAnswer
    {
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
        let claim = UploadClaim(customer: stored.customer, orderID: upload.order?.id)
        do {
            let settled = try await checkOrJoin(stored.receiptID, of: app, for: claim, until: end)
            return .settled(settled, customer: stored.customer)
        } catch let error as LedgerError where error.kind == .busy {
            let held = try await ledger.intake.secondsHeld(stored.receiptID)
            return .pending(stored.receiptID, reason: error.message, heldSeconds: held)
        } catch {
            guard let failure = error.storageFailure else { throw error }
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
