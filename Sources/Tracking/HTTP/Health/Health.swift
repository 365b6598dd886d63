import Hummingbird
import Ledger

extension Route {
    /// `GET /healthz`: the process is alive, whatever the database does.
    static let isAlive = Route(.get, "/healthz") { _, _ in Response(["status": "alive"]) }.brief

    /// `GET /readyz`: lookups can be answered, from a database with a schema that this program fits.
    ///
    /// Without the primary a server that has a standby stays ready: taking it away would end lookups too, and what has to
    /// be written is refused one by one.
    static func isReady(_ ledger: SubscriptionLedger) -> Route {
        Route(.get, "/readyz") { _, _ in
            let standby = await ledger.standby()
            do {
                try await ledger.requireMigrated()
            } catch let error as LedgerError {
                throw Problem.unavailable(error.message, retryAfterSeconds: 5)
            } catch let error as StorageError {
                guard error.isLoss, standby.canAnswer else { throw error }
                return Response(["status": "ready", "primary": "away", "standby": .string(standby.rawValue)])
            }
            guard standby != .none else { return Response(["status": "ready"]) }
            return Response(["status": "ready", "primary": "there", "standby": .string(standby.rawValue)])
        }
    }
}
