import Hummingbird
import Ledger

/// `GET /healthz` and `GET /readyz`: whether the process is alive, and whether it can answer.
struct Health: Sendable {
    let ledger: SubscriptionLedger

    /// Adds both routes. The first needs only microseconds.
    func addRoutes(to routes: RouterGroup<CallerContext>, brief: RouterGroup<CallerContext>) {
        // It does not depend on the database.
        brief.get("/healthz") { _, _ in Response(["status": "alive"]) }
        routes.get("/readyz") { _, _ in try await readiness() }
    }

    /// Returns whether lookups can be answered from a database whose schema fits this program.
    ///
    /// Without the primary, a server that has a standby stays ready. Taking it out of service would end lookups too,
    /// while each write is refused on its own.
    private func readiness() async throws -> Response {
        let standby = await ledger.standby()
        do {
            try await ledger.operations.requireMigrated()
        } catch let error as LedgerError {
            throw Problem.unavailable(error.message, retryAfterSeconds: 5)
        } catch {
            guard error.storageFailure?.isLoss == true, standby.canAnswer else { throw error }
            return Response(["status": "ready", "primary": "away", "standby": .string(standby.rawValue)])
        }
        guard standby != .none else { return Response(["status": "ready"]) }
        return Response(["status": "ready", "primary": "there", "standby": .string(standby.rawValue)])
    }
}

extension RouterMethods where Context == CallerContext {
    /// Adds `GET /openapi.yaml`: the description of this API, for people and generators.
    func addDescription() {
        get("/openapi.yaml") { _, _ in
            Response(
                status: .ok, headers: [.contentType: "application/yaml", .cacheControl: "public, max-age=3600"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: EmbeddedFiles.openapi)))
        }
    }
}
