import Subscriptions
import Synchronization

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
            passTurn(receipt)
        } else {
            let line = memory.withLock { $0.lines.removeValue(forKey: receipt) } ?? []
            for place in line { place.turn.resume(returning: .ended(outcome)) }
        }
        return try outcome.get()
    }

    /// Lets the next waiting caller check; those behind it keep waiting.
    private func passTurn(_ receipt: ReceiptID) {
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
