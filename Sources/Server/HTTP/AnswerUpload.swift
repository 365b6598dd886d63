import AppStore
import Logging
import Subscriptions
import Tracking

/// The answer to an upload, before it is shown to its sender.
enum UploadAnswer: Sendable {
    /// Apple vouches for the receipt. The customer is the one that the sender named, as that name means now.
    case verified(Settled, customer: String?, UploadResult)
    /// The receipt is stored, and Apple is asked again. The reason is one sentence without internal details.
    case waiting(ReceiptID, outcome: String, reason: String, UploadResult)
    /// Apple does not vouch for the receipt.
    case rejected(Settled, UploadResult)
}

/// Stores receipts, asks Apple at once, and asks once more where the answer may change within seconds.
struct ReceiptUploads: Sendable {
    let tracker: Tracker
    let limits: ServerLimits

    /// Submits a receipt and returns what its sender may know of the customer's purchases. Throws
    /// `ReceiptDataError` and `LedgerError` for what cannot be stored.
    func answer(
        to submission: Submission, asking question: UploadQuestion, by actor: Actor?
    ) async throws -> UploadAnswer {
        // When the sender gets an answer at the latest.
        let end = ContinuousClock.now + .seconds(limits.waitSeconds(for: question.purpose))
        let tracker = actor.map(tracker.acting(as:)) ?? tracker
        switch try await tracker.submit(submission, within: limits.submission) {
        case .pending(let receiptID, let reason, let heldSeconds):
            // The reason may name the database. The caller only needs to know that the receipt is stored.
            tracker.logger.debug("a receipt waits", metadata: ["receipt": "\(receiptID)", "reason": "\(reason)"])
            return .waiting(
                receiptID, outcome: "pending", reason: "Apple has not answered yet; it will be asked again.",
                .pending(order: try await order(of: question), heldSeconds: heldSeconds))
        case .settled(let first, let name):
            let (settled, result) = try await settledAtLast(first, question, until: end)
            return try await answer(to: question, settled, of: name, result)
        }
    }

    private func answer(
        to question: UploadQuestion, _ settled: Settled, of name: String?, _ result: UploadResult?
    ) async throws -> UploadAnswer {
        switch settled.outcome {
        case .verified:
            let present = if let result { result } else { try await self.result(question, settled) }
            return .verified(settled, customer: name, present)
        // Apple refused our secret, which says nothing about the receipt. An earlier repetition would be refused too.
        case .rejected where settled.refusal == .wrongSecret:
            return .waiting(
                settled.receiptID, outcome: "pending",
                reason: settled.reason
                    ?? "Apple refused the app's shared secret; the receipt will be asked about again.",
                .pending(
                    order: try await order(of: question),
                    heldSeconds: try await tracker.ledger.claims.secondsHeld(settled.receiptID, backingOff: true)))
        case .rejected:
            return .rejected(settled, .refused(settled.retry, order: try await order(of: question)))
        case .indeterminate:
            return .waiting(
                settled.receiptID, outcome: settled.outcome.rawValue,
                reason: settled.reason ?? "Apple's answer says nothing about the receipt; it will be asked again.",
                .pending(order: try await order(of: question)))
        }
    }

    /// Asks Apple once more where the answer lacks what was just bought, because its answers lag behind a purchase, and
    /// where Apple has a temporary problem of its own. Returns the result too where it was read.
    private func settledAtLast(
        _ settled: Settled, _ question: UploadQuestion, until end: ContinuousClock.Instant
    ) async throws -> (Settled, UploadResult?) {
        let result = settled.outcome == .verified ? try await result(question, settled) : nil
        let isUnsure = settled.outcome == .indeterminate && settled.retry == .soon
        guard isUnsure || result?.mayChangeSoon == true else { return (settled, result) }
        try await Task.sleep(for: .seconds(limits.absentSeconds))
        do {
            let again = try await tracker.check(settled.receiptID, until: end)
            return again.outcome == .verified || settled.outcome != .verified ? (again, nil) : (settled, result)
        } catch let error as LedgerError where error.kind == .busy {
            return (settled, result)
        }
    }

    private func result(_ question: UploadQuestion, _ settled: Settled) async throws -> UploadResult {
        let (order, contents) = try await tracker.ledger.intake.standing(
            of: question.orderID, in: question.bundleID, settled.receiptID, for: question.customer)
        return UploadResult(question, in: contents, order: order)
    }

    private func order(of question: UploadQuestion) async throws -> Order? {
        guard let id = question.orderID else { return nil }
        return try await tracker.ledger.orders.read(id, of: question.bundleID)
    }
}
