import Hummingbird
import Ledger

extension Route {
    /// `GET /healthz`: the process is alive. It does not depend on the database.
    static let isAlive = Route(.get, "/healthz") { _, _ in Response(["status": "alive"]) }.brief

    /// Returns `GET /readyz`: lookups can be answered from a database whose schema fits this program.
    ///
    /// Without the primary, a server that has a standby stays ready. Taking it out of service would end lookups too,
    /// while each write is refused on its own.
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
