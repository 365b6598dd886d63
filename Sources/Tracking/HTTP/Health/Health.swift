import Hummingbird
import Ledger

extension Route {
    /// `GET /healthz`: the process is alive, whatever the database does.
    static let isAlive = Route(.get, "/healthz") { _, _ in Response(["status": "alive"]) }

    /// `GET /readyz`: the database answers and has this program's schema.
    static func isReady(_ ledger: SubscriptionLedger) -> Route {
        Route(.get, "/readyz") { _, _ in
            do {
                try await ledger.requireMigrated()
            } catch let error as LedgerError {
                throw Problem.unavailable(error.message, retryAfterSeconds: 5)
            }
            return Response(["status": "ready"])
        }
    }
}
