import Foundation
import Hummingbird
import Ledger
import Subscriptions

/// `POST` and `DELETE /v1/apps/{bundle}/customers/{id}/grants`: a manual grant of an entitlement, and its early end.
struct GrantRoutes: Sendable {
    private static let path = "/v1/apps/{bundle}/customers/{id}/grants"

    let ledger: SubscriptionLedger
    let limits: ServerLimits

    /// Returns one path with two methods. Both require a key of scope admin.
    func route(behind gate: Gate) -> Route {
        gate.route(.post, Self.path, needs: .admin, give)
            .joined(
                with: gate.route(.delete, Self.path, needs: .admin, query: ["entitlement", "actor", "reason"], revoke))
    }

    private func give(_ visit: AppVisit) async throws -> Response {
        let body = try await limits.json(GrantBody.self, of: visit.request)
        let grant = try await knowing(visit.bundleID) {
            if body.force != true {
                try await ledger.requireKnownEntitlement(
                    body.entitlement, of: visit.bundleID, orElse: "Send \"force\": true for a name to come.")
            }
            return try await ledger.acting(as: .key(visit.key.id)).grant(
                body.entitlement, to: try visit.parameters.decoded("id"), of: visit.bundleID,
                until: try body.instant, deciding: try ManualDecision(by: body.actor, because: body.reason))
        }
        return Response(answer(visit, grant), status: .created)
    }

    private func revoke(_ visit: AppVisit) async throws -> Response {
        let decision = try ManualDecision(by: try visit.text("actor"), because: try visit.text("reason"))
        let entitlement = try visit.text("entitlement")
        let grant = try await knowing(visit.bundleID) {
            try await ledger.acting(as: .key(visit.key.id)).revokeGrant(
                of: entitlement, from: try visit.parameters.decoded("id"), of: visit.bundleID, deciding: decision)
        }
        return Response(answer(visit, grant))
    }

    private func answer(_ visit: AppVisit, _ grant: ManualGrant) -> JSONValue {
        ["app": .string(visit.bundleID.text), "grant": grant.json]
    }

    /// Distinguishes an unregistered app from a missing grant.
    private func knowing(_ bundleID: BundleID, _ change: () async throws -> ManualGrant) async throws -> ManualGrant {
        guard try await ledger.apps().contains(where: { $0.bundleID == bundleID }) else {
            throw Problem.unknownApp(bundleID.text)
        }
        return try await change()
    }
}

/// The body of `POST`.
private struct GrantBody: KnownFields {
    /// The entitlement.
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

extension AppVisit {
    /// Returns a text of the query. Throws a problem when it is missing or empty.
    fileprivate func text(_ name: String) throws -> String {
        guard let text = request.uri.queryParameters.get(name), !text.isEmpty else {
            throw Problem(.invalid, "The query's \(name) is missing.")
        }
        return text
    }
}
