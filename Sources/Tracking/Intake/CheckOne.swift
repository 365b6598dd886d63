import AppStore
package import Ledger
import Subscriptions

extension Tracker {
    /// Asks Apple about one stored receipt now, within the app's call budget, and settles the answer. When this process
    /// already asks about the receipt, returns the result of that check.
    ///
    /// Throws `LedgerError` `notFound`, or `busy` while another process asks or the app may not ask.
    package func check(_ receipt: ReceiptID) async throws -> Settled {
        try await check(receipt, until: nil)
    }

    /// The same, but throws `busy` when Apple's answer takes longer than until `end`; the receipt is then left to the
    /// workers.
    package func check(_ receipt: ReceiptID, until end: ContinuousClock.Instant?) async throws -> Settled {
        try await checkOrJoin(receipt, of: nil, for: nil, until: end)
    }

    /// Checks a receipt for an upload of it, or joins another check of it. The result of one that resolved the upload's
    /// claim counts too, in whichever process it ran.
    ///
    /// The receipt's app may be known already. With `end`, waits until then for another process. Throws `busy` also when Apple's answer takes longer than that;
    /// the receipt is then left to the workers.
    func checkOrJoin(
        _ receipt: ReceiptID, of app: App?, for claim: UploadClaim?, until end: ContinuousClock.Instant?
    ) async throws -> Settled {
        // A check without a limit of its own ends with its lease.
        try await singleFlight.outcome(
            of: receipt, until: end ?? .now + .seconds(options.leaseSeconds),
            isEnough: { settled in claim.map(settled.answers) ?? true },
            check: { try await claimAndCheck(receipt, of: app, for: claim, until: end) })
    }

    /// Checks a receipt as the only one in this process; another process may check it meanwhile.
    private func claimAndCheck(
        _ receipt: ReceiptID, of app: App?, for claim: UploadClaim?, until end: ContinuousClock.Instant?
    ) async throws -> Settled {
        let worker = try await identity.worker(of: self)
        switch try await claimOrAwaitResult(of: receipt, in: app, for: claim, by: worker, until: end) {
        case .settledElsewhere(let settled): return settled
        case .claimed(let claim): return try await takeBudgetAndCheck(claim, until: end)
        }
    }

    private func takeBudgetAndCheck(_ claim: Claim, until end: ContinuousClock.Instant?) async throws -> Settled {
        if let pause = claim.secretPause, !ServerQuestion(about: claim).asksServer {
            try await ledger.claims.release([claim])
            throw LedgerError(.busy, "Apple is not asked for \(claim.app.bundleID) now: \(pause.reason).")
        }
        guard try await ledger.claims.takeBudget([(app: claim.app, calls: 1)])[claim.app.id] == 1 else {
            try await ledger.claims.release([claim])
            let why = claim.app.pause.map { "its checks are paused: \($0.reason)" } ?? "its budget of calls is used up."
            throw LedgerError(.busy, "Apple is not asked for \(claim.app.bundleID) now: \(why)")
        }
        let batch = try await check(claim, until: end)
        await attempt("place events in the feed") { try await ledger.feed.sequenceAll() }
        await writeTally()
        guard let settled = batch.settled.first else {
            throw LedgerError(
                .mismatch, "The answer about receipt \(claim.receiptID) could not be settled; see the log.")
        }
        return settled
    }
}

extension Tracker {
    /// What a caller gets who wants a receipt checked.
    private enum ClaimOrResult {
        /// This process has the lease, so it checks.
        case claimed(Claim)
        /// Another process asked meanwhile, and its settlement resolved the upload's claim.
        case settledElsewhere(Settled)
    }

    /// The interval between two looks at another process that asks about the receipt.
    private static let busyMilliseconds = 100

    /// Claims a receipt, or waits until `end` for another process that has claimed it.
    private func claimOrAwaitResult(
        of receipt: ReceiptID, in app: App?, for upload: UploadClaim?, by worker: WorkerID,
        until end: ContinuousClock.Instant?
    ) async throws -> ClaimOrResult {
        var before: LastCheck?
        while true {
            if before != nil,
                let settled = try await ledger.intake.settled(receipt, for: upload, since: before)
            {
                return .settledElsewhere(settled)
            }
            do {
                let claim = try await ledger.claims.claim(
                    receipt, of: app, for: worker, leaseSeconds: options.leaseSeconds)
                // This process has the lease, so no other one settles. An earlier settlement may have resolved
                // the upload's claim.
                guard let settled = try await ledger.intake.settled(receipt, for: upload, since: before) else {
                    // The customer waits for the result, so the answer is read even where it equals the last one.
                    return .claimed(claim.inFull)
                }
                try await ledger.claims.release([claim])
                return .settledElsewhere(settled)
            } catch let error as LedgerError where error.kind == .busy {
                guard let end, ContinuousClock.now < end else { throw error }
                if before == nil { before = try await ledger.intake.lastCheck(of: receipt, for: upload) }
                try await Task.sleep(for: .milliseconds(Self.busyMilliseconds))
            }
        }
    }
}

extension Settled {
    /// Returns whether the settlement decided the upload's claims. It did not when the upload came too late for it.
    fileprivate func answers(_ claim: UploadClaim) -> Bool {
        isOwnershipDecided(for: claim.customer) && claim.orderID.map(orderIDs.contains) ?? true
    }

    private func isOwnershipDecided(for customer: String?) -> Bool {
        guard let customer, !subscriptions.isEmpty else { return true }
        return subscriptions.contains { $0.ownership[AppCustomerID(customer)] != nil }
    }
}

/// Returns the result of `body`, or nil when it takes longer than `time`; `body` is then cancelled and awaited.
func within<Result: Sendable>(_ time: Duration, _ body: @escaping @Sendable () async -> Result) async -> Result? {
    await withTaskGroup(of: Result?.self) { race in
        race.addTask { await body() }
        race.addTask {
            // The sleep fails only when `body` ended first and cancelled it.
            try? await Task.sleep(for: time)
            return nil
        }
        let first = await race.next() ?? nil
        race.cancelAll()
        return first
    }
}
