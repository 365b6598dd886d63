import Ledger
import Synchronization

/// Checks of single receipts by this process: who wants one while it is under way gets what it comes to, so that the same
/// receipt, sent many times at once, is one call to Apple.
final class ChecksUnderWay: Sendable {
    private typealias Outcome = Result<Settled, any Error>

    /// Who waits, by the receipt that is being checked.
    private let waiting = Mutex<[ReceiptID: [CheckedContinuation<Outcome?, Never>]]>([:])

    /// What `check` comes to, or the one about the same receipt that is under way; `isEnough` says whether that one, which
    /// began earlier, serves this caller too.
    func outcome(
        of receipt: ReceiptID, isEnough: (Settled) -> Bool, check: () async throws -> Settled
    ) async throws -> Settled {
        while let other = await outcomeUnderWay(of: receipt) {
            let settled = try other.get()
            if isEnough(settled) { return settled }
        }
        let outcome: Outcome
        do {
            outcome = .success(try await check())
        } catch {
            outcome = .failure(error)
        }
        for other in waiting.withLock({ $0.removeValue(forKey: receipt) }) ?? [] { other.resume(returning: outcome) }
        return try outcome.get()
    }

    /// Nil when nobody checks the receipt: then the caller does.
    private func outcomeUnderWay(of receipt: ReceiptID) async -> Outcome? {
        await withCheckedContinuation { turn in
            let isFirst = waiting.withLock { waiting in
                guard waiting[receipt] == nil else {
                    waiting[receipt]?.append(turn)
                    return false
                }
                waiting[receipt] = []
                return true
            }
            if isFirst { turn.resume(returning: nil) }
        }
    }
}
