import Hummingbird
package import JSON
import Subscriptions
package import Tracking

/// `/v1/webhooks…`: receivers of events, for keys of scope admin. A key of one app sees and makes only that app's.
struct WebhookRoutes: Sendable {
    let tracker: Tracker
    let limits: ServerLimits

    func addRoutes(to routes: KeyedRoutes) {
        let routes = routes.ofAnyApp(needing: .admin)
        routes.get("/v1/webhooks", use: list)
        routes.post("/v1/webhooks", use: add)
        routes.get("/v1/webhooks/{webhook}", use: show)
        routes.patch("/v1/webhooks/{webhook}", use: set)
        routes.delete("/v1/webhooks/{webhook}", use: remove)
        routes.post("/v1/webhooks/{webhook}:rotate-secret", use: rotateSecret)
        routes.post("/v1/webhooks/{webhook}:test", use: test)
        routes.post("/v1/webhooks/{webhook}:skip", use: skip)
        routes.post("/v1/webhooks/{webhook}:replay", use: replay)
    }

    private func list(_: Request, _ context: KeyContext) async throws -> Response {
        let all = try await tracker.ledger.webhooks.all(of: context.key.bundleID)
        return Response(["webhooks": .array(all.map { $0.json() })])
    }

    private func add(_ request: Request, _ context: KeyContext) async throws -> Response {
        let body = try await limits.json(AddBody.self, of: request)
        let app = body.app.map { BundleID($0) } ?? context.key.bundleID
        if let own = context.key.bundleID, app != own { throw Problem.unknownApp(app ?? "") }
        let environment = body.environment.flatMap(StoreEnvironment.init(rawValue:))
        if environment == nil, body.environment != nil {
            throw Problem(.invalid, "The body's environment is Production or Sandbox, or it is left out.")
        }
        let added = try await webhooks(context).add(
            url: body.url, app: app, kinds: body.kinds, environment: environment,
            concurrency: body.concurrency?.count ?? LedgerWebhooks.concurrencyUsual,
            secret: try body.secret.map { try WebhookSecret($0) },
            from: body.from.map { try WebhookStart($0.text) } ?? .now)
        return Response(added.webhook.json(with: ["secret": .string(added.secret.text)]), status: .created)
    }

    private func show(_: Request, _ context: KeyContext) async throws -> Response {
        let webhook = try await webhook(context)
        let waiting = try await tracker.ledger.webhooks.waiting(for: webhook.id)
        return Response(webhook.json(with: ["waiting_events": .array(waiting.map(\.json))]))
    }

    private func set(_ request: Request, _ context: KeyContext) async throws -> Response {
        let body = try await limits.json(SetBody.self, of: request)
        let webhook = try await webhook(context)
        guard [nil, "on", "off"].contains(body.state) else { throw Problem(.invalid, "The body's state is on or off.") }
        try await webhooks(context).set(
            webhook.id, url: body.url, concurrency: body.concurrency?.count, isOn: body.state.map { $0 == "on" })
        return Response(try await tracker.ledger.webhooks.webhook(webhook.id).json())
    }

    private func remove(_: Request, _ context: KeyContext) async throws -> Response {
        let webhook = try await webhook(context)
        try await webhooks(context).remove(webhook.id)
        return Response(webhook.json())
    }

    private func rotateSecret(_ request: Request, _ context: KeyContext) async throws -> Response {
        let body = try await limits.json(RotateBody.self, of: request)
        let webhook = try await webhook(context)
        let finish = body.finish ?? false
        guard !finish || body.secret == nil else {
            throw Problem(.invalid, "The body's finish takes no secret: it only ends the one before.")
        }
        let secret = try await webhooks(context).rotateSecret(
            of: webhook.id, to: try body.secret.map { try WebhookSecret($0) }, finish: finish)
        return Response(["webhook_id": .string("\(webhook.id)"), "secret": .optional(secret?.text)])
    }

    private func test(_ request: Request, _ context: KeyContext) async throws -> Response {
        _ = try await limits.json(NoFields.self, of: request)
        let outcome = try await tracker.testWebhook(try await webhook(context).id)
        return Response([
            "delivered": .bool(outcome == .delivered), "status": .optional(outcome.failure?.status.map(Int64.init)),
            "detail": .string(outcome.sentence),
        ])
    }

    private func skip(_ request: Request, _ context: KeyContext) async throws -> Response {
        let body = try await limits.json(WebhookSkipBody.self, of: request)
        let webhook = try await webhook(context)
        try await webhooks(context).skip(body.position.number, of: webhook.id, because: body.reason)
        return Response(try await tracker.ledger.webhooks.webhook(webhook.id).json())
    }

    private func replay(_ request: Request, _ context: KeyContext) async throws -> Response {
        let body = try await limits.json(ReplayBody.self, of: request)
        let webhook = try await webhook(context)
        try await webhooks(context).replay(webhook.id, from: try WebhookStart(body.from.text))
        return Response(try await tracker.ledger.webhooks.webhook(webhook.id).json())
    }

    /// The webhook that the path names. Another app's, for a key of one app, is unknown.
    private func webhook(_ context: KeyContext) async throws -> Webhook {
        try await tracker.ledger.webhooks.webhook(
            context.parameters.number("webhook", of: "webhook"), of: context.key.bundleID)
    }

    private func webhooks(_ context: KeyContext) -> LedgerWebhooks {
        tracker.ledger.acting(as: .key(context.key.id)).webhooks
    }
}

/// A start in the feed: a word, an instant, or a position as a number.
private struct StartText: Decodable, Sendable {
    let text: String

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let word = (try? container.decode(String.self)).flatMap { Int64($0) == nil ? $0 : nil }
        text = try word ?? "\(container.number(in: 1...Int64.max))"
        if Instant(iso8601: text) != nil { _ = try Instant(asked: text, as: "The body's from") }
    }
}

private struct CallCount: Decodable, Sendable {
    let count: Int

    init(from decoder: any Decoder) throws {
        count = try decoder.singleValueContainer().number(in: LedgerWebhooks.concurrencyAllowed)
    }
}

private struct FeedPosition: Decodable, Sendable {
    let number: Int64

    init(from decoder: any Decoder) throws { number = try decoder.singleValueContainer().number(in: 1...Int64.max) }
}

private struct AddBody: KnownFields {
    let url: String
    let app: String?
    let kinds: [String]?
    let environment: String?
    let concurrency: CallCount?
    let secret: String?
    let from: StartText?

    enum CodingKeys: CodingKey, CaseIterable { case url, app, kinds, environment, concurrency, secret, from }
}

private struct SetBody: KnownFields {
    let url: String?
    let concurrency: CallCount?
    let state: String?

    enum CodingKeys: CodingKey, CaseIterable { case url, concurrency, state }
}

private struct RotateBody: KnownFields {
    let secret: String?
    let finish: Bool?

    enum CodingKeys: CodingKey, CaseIterable { case secret, finish }
}

private struct WebhookSkipBody: KnownFields {
    let position: FeedPosition
    let reason: String

    enum CodingKeys: CodingKey, CaseIterable { case position, reason }
}

private struct ReplayBody: KnownFields {
    let from: StartText

    enum CodingKeys: CodingKey, CaseIterable { case from }
}

extension Webhook {
    /// The webhook as the API reports it, without its secrets.
    package func json(with more: [String: JSONValue] = [:]) -> JSONValue {
        let members: [String: JSONValue] = [
            "webhook_id": .string("\(id)"), "app": .optional(bundleID?.text), "url": .string(shownURL),
            "kinds": kinds.map { .array($0.map { .string($0) }) } ?? .null,
            "environment": .optional(environment?.rawValue), "concurrency": .integer(Int64(concurrency)),
            "state": .string(state.rawValue), "reason": .optional(reason), "state_since": .string(stateSince.iso8601),
            "rest_until": .optional(restUntil?.iso8601), "position": .integer(position), "behind": .integer(behind),
            "waiting": .integer(waiting), "waiting_since": .optional(waitingSince?.iso8601),
            "has_previous_secret": .bool(hasPreviousSecret), "created_at": .string(createdAt.iso8601),
        ]
        return .object(members.merging(more) { own, _ in own })
    }
}

extension WaitingEvent {
    package var json: JSONValue {
        [
            "position": .integer(position), "kind": .string(kind), "app": .string(bundleID.text),
            "original_transaction_id": .optional(originalTransactionID), "customer": .optional(customer),
            "attempts": .integer(Int64(attempts)), "next_at": .string(nextAt.iso8601), "since": .string(since.iso8601),
            "status": .optional(status.map(Int64.init)), "reason": .optional(reason),
        ]
    }
}
