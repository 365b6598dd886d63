import Foundation
import Hummingbird
import Ledger
import Subscriptions

/// `POST` and `DELETE /v1/apps/{bundle}/customers/{id}/grants`: a manual grant of an entitlement, and its early end.
struct GrantRoutes: Sendable {
    private static let path: RouterPath = "/v1/apps/{bundle}/customers/{id}/grants"

    let ledger: SubscriptionLedger
    let limits: ServerLimits

    /// Adds one path with two methods. Both need a key of scope admin.
    func addRoutes(to routes: RouterGroup<KeyContext>) {
        routes.ofApp(needing: .admin).post(Self.path, use: give)
        routes.ofApp(needing: .admin, query: ["entitlement", "actor", "reason"]).delete(Self.path, use: revoke)
    }

    private func give(_ request: Request, _ context: AppContext) async throws -> Response {
        let body = try await limits.json(GrantBody.self, of: request)
        let asked = try request.idempotencyKey.map { try GrantRequest(key: $0) }
        let given = try await knowing(context.bundleID) {
            if body.force != true {
                try await ledger.apps.requireKnownEntitlement(
                    body.entitlement, of: context.bundleID, orElse: "Send \"force\": true for a name to come.")
            }
            return try await ledger.acting(as: .key(context.key.id)).customers.give(
                body.entitlement, to: try context.parameters.decoded("id"), of: context.bundleID,
                until: try body.instant, deciding: try ManualDecision(by: body.actor, because: body.reason),
                asked: asked)
        }
        return Response(answer(context, given.grant), status: given.isNew ? .created : .ok)
    }

    private func revoke(_ request: Request, _ context: AppContext) async throws -> Response {
        let decision = try ManualDecision(by: try request.text("actor"), because: try request.text("reason"))
        let entitlement = try request.text("entitlement")
        let grant = try await knowing(context.bundleID) {
            try await ledger.acting(as: .key(context.key.id)).customers.revokeGrant(
                of: entitlement, from: try context.parameters.decoded("id"), of: context.bundleID, deciding: decision)
        }
        return Response(answer(context, grant))
    }

    private func answer(_ context: AppContext, _ grant: ManualGrant) -> JSONValue {
        ["app": .string(context.bundleID.text), "grant": grant.json]
    }

    /// Distinguishes an unregistered app from a missing grant.
    private func knowing<Change>(_ bundleID: BundleID, _ change: () async throws -> Change) async throws -> Change {
        guard try await ledger.apps.all().contains(where: { $0.bundleID == bundleID }) else {
            throw Problem.unknownApp(bundleID.text)
        }
        return try await change()
    }
}

/// The body of `POST`.
private struct GrantBody: KnownFields {
    let entitlement: String
    /// When it ends, in ISO 8601. It has no end where this is absent or null.
    let until: String?
    /// The person who grants it.
    let actor: String
    /// The reason for the grant.
    let reason: String
    /// Whether the entitlement may be one that no product of the app grants yet.
    let force: Bool?

    enum CodingKeys: CodingKey, CaseIterable {
        case entitlement, until, actor, reason, force
    }

    /// The end. Throws a problem for a text that is no instant.
    var instant: Instant? {
        get throws {
            try until.map { try Instant(asked: $0, as: "The body's until") }
        }
    }
}

extension Request {
    /// Returns a text of the query. Throws a problem when it is missing or empty.
    fileprivate func text(_ name: String) throws -> String {
        guard let text = uri.queryParameters.get(name), !text.isEmpty else {
            throw Problem(.invalid, "The query's \(name) is missing.")
        }
        return text
    }
}
