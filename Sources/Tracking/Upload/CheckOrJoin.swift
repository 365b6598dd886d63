import AppStore
import Subscriptions
import Synchronization

extension Tracker {
    /// Asks Apple about one stored receipt now, within the app's call budget, and settles the answer, or returns the
    /// result of a check that is under way in this process. Throws `LedgerError` `notFound`, or `busy` while another
    /// process asks, the app may not ask, or Apple takes longer than until `end`; the workers then go on.
    package func check(_ receipt: ReceiptID, until end: ContinuousClock.Instant? = nil) async throws -> Settled {
        try await checkOrJoin(receipt, of: nil, for: nil, until: end)
    }

    /// Checks a receipt for an upload of it, or joins another check of it. The result of one that resolved the upload's
    /// claim counts too, in whichever process it ran. Throws as ``check(_:until:)`` does.
    func checkOrJoin(
        _ receipt: ReceiptID, of app: App?, for claim: UploadClaim?, until end: ContinuousClock.Instant?
    ) async throws -> Settled {
        // A check without a limit of its own ends with its lease.
        try await singleFlight.outcome(
            of: receipt, until: end ?? .now + .seconds(options.leaseSeconds),
            isEnough: { settled in claim.map(settled.answers) ?? true },
            check: { try await claimAndCheck(receipt, of: app, for: claim, until: end) })
    }

    /// The interval between two looks at another process that asks about the receipt.
    private static let busyMilliseconds = 100

    /// Checks a receipt as the only one in this process, or waits until `end` for the result of another process.
    private func claimAndCheck(
        _ receipt: ReceiptID, of app: App?, for upload: UploadClaim?, until end: ContinuousClock.Instant?
    ) async throws -> Settled {
        let worker = try await identity.worker(of: self)
        var before: LastCheck?
        while true {
            if before != nil, let settled = try await ledger.intake.settled(receipt, for: upload, since: before) {
                return settled
            }
            let claim: Claim
            do {
                claim = try await ledger.claims.claim(receipt, of: app, for: worker, leaseSeconds: options.leaseSeconds)
            } catch let error as LedgerError where error.kind == .busy {
                guard let end, ContinuousClock.now < end else { throw error }
                if before == nil { before = try await ledger.intake.lastCheck(of: receipt, for: upload) }
                try await Task.sleep(for: .milliseconds(Self.busyMilliseconds))
                continue
            }
            // This process has the lease, so no other one settles. An earlier settlement may have resolved the claim.
            guard let settled = try await ledger.intake.settled(receipt, for: upload, since: before) else {
                // The customer waits for the result, so the answer is read even where it equals the last one.
                if let settled = try await takeBudgetAndCheck(claim.inFull, until: end) { return settled }
                // Another process may ask by now.
                guard let end, ContinuousClock.now < end else { throw Self.leaseLost }
                continue
            }
            try await ledger.claims.release([claim])
            return settled
        }
    }

    private static let leaseLost = LedgerError(
        .busy, "The lease of the receipt ran out before Apple's answer was settled; a worker will ask again.")

    /// Checks a claimed receipt; nil when the lease ran out and the answer has no evidence, so that it comes too late.
    private func takeBudgetAndCheck(_ claim: Claim, until end: ContinuousClock.Instant?) async throws -> Settled? {
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
        return batch.settled.first
    }
}

extension Settled {
    /// Returns whether the settlement decided the upload's claims. It did not when the upload came too late for it.
    fileprivate func answers(_ claim: UploadClaim) -> Bool {
        guard claim.orderID.map(orderIDs.contains) ?? true else { return false }
        guard let customer = claim.customer, !subscriptions.isEmpty else { return true }
        return subscriptions.contains { $0.ownership[AppCustomerID(customer)] != nil }
    }
}

/// Returns the result of `body`, or nil when it takes longer than `time`; `body` is then cancelled and awaited.
package func within<Value: Sendable, Failure: Error>(
    _ time: Duration, _ body: @escaping @Sendable () async throws(Failure) -> Value
) async throws(Failure) -> Value? {
    let first: Result<Value, Failure>? = await withTaskGroup(of: Result<Value, Failure>?.self) { race in
        race.addTask {
            do throws(Failure) { return .success(try await body()) } catch { return .failure(error) }
        }
        race.addTask {
            // The sleep fails only when `body` ended first and cancelled it.
            try? await Task.sleep(for: time)
            return nil
        }
        let first = await race.next() ?? nil
        race.cancelAll()
        return first
    }
    return try first?.get()
}

/// The checks of single receipts by this process: the same receipt, sent many times at once, is one call to Apple.
final class SingleFlight: Sendable {
    private typealias Outcome = Result<Settled, any Error>

    /// The reply to a caller who wants a check.
    private enum Turn: Sendable {
        /// The caller checks: no other caller does.
        case first
        /// The result of the check under way.
        case ended(Outcome)
        /// No result: the caller waited too long or was cancelled.
        case left
    }

    /// A waiting caller, numbered in order of arrival.
    private typealias Place = (number: UInt64, turn: CheckedContinuation<Turn, Never>)

    private struct Memory {
        /// The waiting callers, by the receipt that is being checked.
        var lines: [ReceiptID: [Place]] = [:]
        var lastNumber: UInt64 = 0
    }

    private let memory = Mutex(Memory())

    /// Returns the result of `check`, or of the check of the same receipt that is under way. `isEnough` says whether
    /// that one, which began earlier, serves this caller too. When it is cancelled, the next waiting caller checks.
    /// Throws `LedgerError` `busy` where the caller has no turn until `end`, `CancellationError` where it is cancelled.
    func outcome(
        of receipt: ReceiptID, until end: ContinuousClock.Instant, isEnough: (Settled) -> Bool,
        check: () async throws -> Settled
    ) async throws -> Settled {
        while true {
            switch await turn(at: receipt, until: end) {
            case .first:
                return try await outcomeForAll(of: receipt, check)
            case .ended(let outcome):
                let settled = try outcome.get()
                if isEnough(settled) { return settled }
            case .left:
                try Task.checkCancellation()
                throw LedgerError(.busy, "The receipt is being checked; the check takes longer than may be waited.")
            }
        }
    }

    func waiting(for receipt: ReceiptID) -> Int { memory.withLock { $0.lines[receipt]?.count ?? 0 } }

    private func outcomeForAll(of receipt: ReceiptID, _ check: () async throws -> Settled) async throws -> Settled {
        let outcome: Outcome
        do { outcome = .success(try await check()) } catch { outcome = .failure(error) }
        // The result of a cancelled task says nothing about the receipt, and the other callers did not cause it.
        if Task.isCancelled {
            handOver(receipt)
        } else {
            let line = memory.withLock { $0.lines.removeValue(forKey: receipt) } ?? []
            for place in line { place.turn.resume(returning: .ended(outcome)) }
        }
        return try outcome.get()
    }

    /// Lets the next waiting caller check; those behind it keep waiting.
    private func handOver(_ receipt: ReceiptID) {
        let next: Place? = memory.withLock { memory in
            if memory.lines[receipt]?.isEmpty == true { memory.lines[receipt] = nil }
            return memory.lines[receipt]?.removeFirst()
        }
        next?.turn.resume(returning: .first)
    }

    /// Waits for the caller's turn until `end`. A turn that was given is taken, however late: no other caller has it.
    private func turn(at receipt: ReceiptID, until end: ContinuousClock.Instant) async -> Turn {
        await withTaskGroup(of: Turn?.self) { race in
            race.addTask { await self.wait(at: receipt) }
            race.addTask {
                // The sleep fails only when the turn came first and cancelled it.
                try? await Task.sleep(until: end, clock: .continuous)
                return nil
            }
            var given = Turn.left
            for await turn in race {
                given = turn ?? given
                race.cancelAll()
            }
            return given
        }
    }

    /// Waits for the caller's turn until the task is cancelled.
    private func wait(at receipt: ReceiptID) async -> Turn {
        let number = memory.withLock { memory in
            memory.lastNumber += 1
            return memory.lastNumber
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { turn in
                let known: Turn? = memory.withLock { memory in
                    guard memory.lines[receipt] != nil else {
                        memory.lines[receipt] = []
                        return .first
                    }
                    // A cancellation before this place was in the line could not remove it; a later one removes it.
                    guard !Task.isCancelled else { return .left }
                    memory.lines[receipt]?.append((number: number, turn: turn))
                    return nil
                }
                if let known { turn.resume(returning: known) }
            }
        } onCancel: {
            leave(number, at: receipt)
        }
    }

    private func leave(_ number: UInt64, at receipt: ReceiptID) {
        let left: Place? = memory.withLock { memory in
            guard let index = memory.lines[receipt]?.firstIndex(where: { $0.number == number }) else { return nil }
            return memory.lines[receipt]?.remove(at: index)
        }
        left?.turn.resume(returning: .left)
    }
}
