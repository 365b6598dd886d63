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
            try await askAbout(batch.unknown)
            if batch.notifications == 0 { break }
        }
        return applied
    }

    /// Stores transactions of unknown subscriptions as uploads of no customer; the Server API is asked about them.
    private func askAbout(_ unknown: [UnknownTransaction]) async throws {
        let submissions = Set(unknown).map {
            Submission(bundleID: $0.bundleID, customer: nil, subject: .transactionID($0.id.text))
        }
        for result in try await store(submissions) { _ = try result.get() }
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
