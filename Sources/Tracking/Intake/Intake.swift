import AppStore
import Ledger
import Subscriptions

extension Tracker {
    /// Stores a receipt and asks Apple about it at once.
    ///
    /// Throws `ReceiptDataError` for what is no receipt, `LedgerError` for an unknown app or a bad customer id, or when
    /// `limits` are exceeded. What is stored stays stored: when Apple cannot be asked now, the answer is `pending` and the
    /// schedule goes on.
    public func submit(_ submission: Submission, within limits: SubmissionLimits? = nil) async throws
        -> SubmissionAnswer
    {
        let app = try await ledger.app(submission.bundleID)
        let upload = try Upload(submission, app: app)
        guard let stored = try await ledger.store([upload], newReceiptsMax: limits?.newReceiptsMax).first else {
            throw LedgerError(.mismatch, "The receipt was not stored; run `perennial migrate`.")
        }
        do {
            let settled = try await checksUnderWay.outcome(
                of: stored.receiptID, isEnough: { $0.answers(stored.customer) },
                check: { try await check(stored.receiptID, answeredWithin: limits?.answerSeconds) })
            return .settled(settled, customer: stored.customer)
        } catch let error as LedgerError where error.kind == .busy {
            return .pending(stored.receiptID, reason: error.message)
        } catch let error as StorageError {
            return .pending(stored.receiptID, reason: error.message)
        }
    }

    /// Asks Apple about one stored receipt now, within the app's budget of calls, and settles the answer.
    ///
    /// Throws `LedgerError` `notFound`, or `busy` while another process asks, the app may not ask, or when Apple's answer
    /// takes longer than `seconds`: then the receipt is handed to the workers. With `seconds` another process is waited for.
    public func check(_ receipt: ReceiptID, answeredWithin seconds: Double? = nil) async throws -> Settled {
        let worker = try await identity.worker(of: ledger)
        let end = seconds.map { ContinuousClock.now + .seconds($0) }
        let claim = try await claim(receipt, for: worker, until: end)
        guard try await ledger.takeBudget([(app: claim.app, calls: 1)])[claim.app.id] == 1 else {
            try await ledger.release([claim], of: worker)
            let why = claim.app.pause.map { "its checks are paused: \($0.reason)" } ?? "its budget of calls is used up."
            throw LedgerError(.busy, "Apple is not asked for \(claim.app.bundleID) now: \(why)")
        }
        guard let answer = await ask(about: claim, until: end) else {
            try await ledger.release([claim], of: worker)
            throw LedgerError(.busy, "Apple has not answered in time; a worker will ask again.")
        }
        let settled = try await settleInFull(answer, by: worker)
        do {
            try await ledger.placeEvents()
        } catch {
            logger.warning("events wait for their position in the feed: \(error)")
        }
        await writeTally()
        guard let settled else {
            throw LedgerError(.mismatch, "The answer about receipt \(receipt) could not be settled; see the log.")
        }
        return settled
    }

    /// How often another process that asks about the receipt is looked after.
    private static let busyMilliseconds = 100

    private func claim(
        _ receipt: ReceiptID, for worker: WorkerID, until end: ContinuousClock.Instant?
    ) async throws -> Claim {
        while true {
            do {
                return try await ledger.claim(receipt, for: worker, leaseSeconds: options.leaseSeconds)
            } catch let error as LedgerError where error.kind == .busy {
                guard let end, ContinuousClock.now < end else { throw error }
                try await Task.sleep(for: .milliseconds(Self.busyMilliseconds))
            }
        }
    }

    private func ask(about claim: Claim, until end: ContinuousClock.Instant?) async -> Checked? {
        guard let end else { return await ask(about: claim) }
        return await within(end - .now) { await ask(about: claim) }
    }
}

extension Settled {
    /// Whether it tells a customer what became of their upload: not when that came too late for it.
    fileprivate func answers(_ customer: String) -> Bool {
        subscriptions.isEmpty || subscriptions.contains { $0.ownership[customer] != nil }
    }
}

/// What one submission may take.
public struct SubmissionLimits: Sendable {
    /// How long Apple's answer is waited for.
    public var answerSeconds: Double = 10
    /// Receipts that nobody knew before, of one customer in an hour.
    public var newReceiptsMax = 10
}
