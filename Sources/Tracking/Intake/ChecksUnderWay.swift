import Ledger
import Synchronization

/// Checks of single receipts by this process: who wants one while it is under way gets what it comes to, so that the same
/// receipt, sent many times at once, is one call to Apple.
final class ChecksUnderWay: Sendable {
    private typealias Outcome = Result<Settled, any Error>

    /// What somebody who wants a check is told.
    private enum Turn: Sendable {
        /// To check themselves: nobody does.
        case first
        /// What the check under way came to.
        case told(Outcome)
        /// Nothing: they waited too long, or do not want it any more.
        case left
    }

    /// Somebody who waits, in the order in which they came.
    private struct Place {
        let number: UInt64
        let turn: CheckedContinuation<Turn, Never>
    }

    private struct Memory {
        /// Who waits, by the receipt that is being checked.
        var lines: [ReceiptID: [Place]] = [:]
        var lastNumber: UInt64 = 0
    }

    private let memory = Mutex(Memory())

    /// What `check` comes to, or the one about the same receipt that is under way; `isEnough` says whether that one, which
    /// began earlier, serves this caller too.
    ///
    /// When the task that checks is cancelled the next one who waits checks. Throws `LedgerError` `busy` when it is nobody's
    /// turn until `end`, `CancellationError` when this caller's task is cancelled.
    func outcome(
        of receipt: ReceiptID, until end: ContinuousClock.Instant, isEnough: (Settled) -> Bool,
        check: () async throws -> Settled
    ) async throws -> Settled {
        while true {
            switch await turn(at: receipt, until: end) {
            case .first:
                return try await outcomeForAll(of: receipt, check)
            case .told(let outcome):
                let settled = try outcome.get()
                if isEnough(settled) { return settled }
            case .left:
                try Task.checkCancellation()
                throw LedgerError(.busy, "The receipt is being checked; the check takes longer than may be waited.")
            }
        }
    }

    /// How many wait for the check of a receipt.
    func waiting(for receipt: ReceiptID) -> Int { memory.withLock { $0.lines[receipt]?.count ?? 0 } }

    private func outcomeForAll(of receipt: ReceiptID, _ check: () async throws -> Settled) async throws -> Settled {
        let outcome: Outcome
        do {
            outcome = .success(try await check())
        } catch {
            outcome = .failure(error)
        }
        // What a cancelled task comes to says nothing of the receipt, and nobody else is to blame for it.
        if Task.isCancelled {
            handOver(receipt)
        } else {
            let line = memory.withLock { $0.lines.removeValue(forKey: receipt) } ?? []
            for place in line { place.turn.resume(returning: .told(outcome)) }
        }
        return try outcome.get()
    }

    /// The next one who waits checks; those behind them wait on.
    private func handOver(_ receipt: ReceiptID) {
        let next: Place? = memory.withLock { memory in
            guard let line = memory.lines[receipt], !line.isEmpty else {
                memory.lines[receipt] = nil
                return nil
            }
            return memory.lines[receipt]?.removeFirst()
        }
        next?.turn.resume(returning: .first)
    }

    /// Waits for one's turn, no longer than until `end`. A turn that was given is taken, however late: it is nobody else's.
    private func turn(at receipt: ReceiptID, until end: ContinuousClock.Instant) async -> Turn {
        await withTaskGroup(of: Turn?.self) { race in
            race.addTask { await self.wait(at: receipt) }
            race.addTask {
                // Being cancelled is the only way to fail, and then the race is over.
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

    /// Waits for one's turn until the task is cancelled.
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
                    // A cancellation before this one's place was known could not give it up; a later one will.
                    guard !Task.isCancelled else { return .left }
                    memory.lines[receipt]?.append(Place(number: number, turn: turn))
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
