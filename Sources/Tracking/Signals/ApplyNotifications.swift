import Ledger
import Subscriptions

extension Tracker {
    /// Applies due notifications until none is left; returns how many were applied.
    @discardableResult
    func applyNotifications() async throws -> Int {
        var applied = 0
        while !isStopping() {
            let batch = try await ledger.settlements.applyNotifications(reading: { $0.evidence })
            if batch.events > 0 { feedBell.ring() }
            applied += batch.notifications
            if batch.notifications == 0 { break }
        }
        return applied
    }
}

extension Worker {
    /// Seconds between two looks for notifications that are to be applied.
    private static let lookSeconds = 0.25

    /// Applies notifications as they come, until shutdown.
    func keepApplyingNotifications() async {
        while !isStopping() {
            await tracker.attempt("apply notifications") { try await tracker.applyNotifications() }
            await rest(seconds: Self.lookSeconds)
        }
    }
}
