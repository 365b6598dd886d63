import Ledger
import Logging
import Postgres
import ServiceLifecycle

/// A service that starts when the database answers and is migrated. Until then it retries and logs it.
struct DatabaseWait: Service {
    /// The longest wait between two tries, in seconds.
    static let waitSecondsMax = 30

    let ledger: SubscriptionLedger
    let logger: Logger
    let service: any Service

    func run() async throws {
        var waitSeconds = 1
        var said: String?
        while !isShuttingDownGracefully, !Task.isCancelled {
            do {
                try await ledger.operations.requireMigrated()
                return try await service.run()
            } catch let error as DatabaseError {
                guard case .retry = error.disposition else { throw error }
                // The database's connections log their loss; any other failure is logged here.
                let level: Logger.Level = error.isLoss || error.message == said ? .debug : .error
                logger.log(level: level, "\(error.message)", metadata: ["again_in_seconds": "\(waitSeconds)"])
                said = error.message
            }
            let seconds = waitSeconds
            await cancelWhenGracefulShutdown { await pause(seconds: seconds) }
            waitSeconds = min(waitSeconds * 2, Self.waitSecondsMax)
        }
    }

    private var isShuttingDownGracefully: Bool { Task.isShuttingDownGracefully }
}

/// Waits; returns early when the task is cancelled.
func pause(seconds: Int) async {
    // Only a cancellation makes the sleep fail, and then there is nothing left to wait for.
    try? await Task.sleep(for: .seconds(seconds))
}

/// Ends a long-running command early when the database answers but its schema does not fit this program. When the
/// database is down, the command goes on and waits for it.
func refuseOtherSchema(_ ledger: SubscriptionLedger, logger: Logger) async throws {
    do {
        try await ledger.operations.requireMigrated()
    } catch let error as DatabaseError {
        guard case .retry = error.disposition else { throw error }
        logger.log(level: error.isLoss ? .debug : .error, "\(error.message)")
    }
}
