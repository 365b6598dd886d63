import Postgres
import SQL
import Subscriptions

/// A stream of events: a subscription, a one-time purchase, or a customer's manual changes.
package struct WebhookStream: Sendable, Hashable {
    let of: String
    let id: Int64
}

/// A webhook that one worker leases. Its fence makes each write void after another lease or any change by hand.
package struct HeldWebhook: Sendable {
    package let id: Int32
    let fence: Int64
    let position: Int64

    init(row: Row) throws {
        id = try row.int4("webhook_id")
        fence = try row.int8("fence")
        position = try row.int8("position")
    }

    var parameters: [Parameter] { [.int4(id), .int8(fence)] }

    /// The parameters of the statement that moves it, or says what became of streams that wait.
    func parameters(movingTo position: Int64?, _ lines: [WebhookLine], leaseSeconds: Double) -> [Parameter] {
        parameters + [
            .int8(position), .float8(leaseSeconds), .texts(lines.map(\.stream.of)), .int8s(lines.map(\.stream.id)),
            .int8s(lines.map(\.position)), .int8s(lines.map(\.done)), .float8s(lines.map(\.seconds)),
            .int2s(lines.map { $0.failure?.status.flatMap { Int16(exactly: $0) } }),
            .texts(lines.map(\.failure?.reason)),
        ]
    }
}

/// How a leased webhook stands.
package struct WebhookLook: Sendable {
    package let url: String
    package let concurrency: Int
    package let secrets: [WebhookSecret]
    package let position: Int64
    package let newest: Int64
    package let state: Webhook.State
    /// Whether the rest is not over.
    package let isResting: Bool
    package let rests: Int
    package let hasDue: Bool
}

/// An event as a webhook sends it.
package struct WebhookMessage: Sendable {
    package let stream: WebhookStream
    package let position: Int64
    /// Where its stream waits; nil: it does not, or the event is of a window.
    package let line: Int64?
    package let attempts: Int
    /// The id of the message, the same at each attempt; nil where there is no body.
    package let id: String?
    /// The bytes to send; nil where its stream waits, or where the event is for no webhook any more.
    package let body: [UInt8]?

    fileprivate init(row: Row, line: Int64? = nil, attempts: Int = 0) throws {
        stream = WebhookStream(of: try row.text("stream_of"), id: try row.int8("stream_id"))
        position = try row.int8("position")
        self.line = line
        self.attempts = attempts
        id = try row.textIfPresent("identity").map { "msg_" + EventIdentity(of: "webhook/\($0)").uuid }
        body = try row.textIfPresent("body").map { Array($0.utf8) }
    }
}

/// A stream that begins to wait, or what became of one that waits.
package struct WebhookLine: Sendable {
    let stream: WebhookStream
    /// From where on it waits.
    let position: Int64
    /// Up to where it is done.
    var done: Int64?
    /// In how many seconds the event that failed is sent again.
    var seconds: Double?
    var failure: WebhookFailure?
}

/// Why a call failed, in words for operators: never bytes of an answer.
package struct WebhookFailure: Sendable, Hashable {
    /// The HTTP status; nil where none came.
    package var status: Int?
    package var reason: String
    /// The seconds that the receiver asks to wait, at most a day.
    package var retryAfterSeconds: Double?
}

extension LedgerWebhooks {
    package static let leaseSeconds = 60.0
    /// The most events of a window, and the most positions that it searches.
    package static let windowEventsMax = 500
    static let windowPositionsMax: Int64 = 10_000

    /// Leases webhooks that no worker has, at most `limit`.
    package func lease(limit: Int) async throws -> [HeldWebhook] {
        try await write(Queries.leaseWebhooks, .float8(Self.leaseSeconds), .int4(Int32(clamping: limit)))
            .map(HeldWebhook.init(row:))
    }

    /// Returns how a leased webhook stands; nil where this worker has it no more.
    package func look(at held: HeldWebhook) async throws -> WebhookLook? {
        guard let row = try await query(Queries.lookAtWebhook, held.parameters).first else { return nil }
        return WebhookLook(
            url: try row.text("url"), concurrency: Int(try row.int2("concurrency")),
            secrets: try secrets(of: held.id, in: row), position: try row.int8("position"),
            newest: try row.int8("newest"), state: try row.word("state"), isResting: try row.bool("is_resting"),
            rests: Int(try row.int4("rests")), hasDue: try row.bool("has_due"))
    }

    /// Returns the next events of a webhook, in order, and the position up to which they are all of its events. Streams that
    /// wait have no bodies. It runs on a connection of its own, because lookups do not wait for it.
    package func window(of held: HeldWebhook, _ look: WebhookLook) async throws -> ([WebhookMessage], end: Int64) {
        let end = min(look.newest, look.position + Self.windowPositionsMax)
        let messages = try await write(
            Queries.readWebhookWindow, .int4(held.id), .int8(look.position), .int8(end),
            .int4(Int32(Self.windowEventsMax))
        ).map { try WebhookMessage(row: $0) }
        return (messages, messages.count < Self.windowEventsMax ? end : messages.last?.position ?? end)
    }

    /// Returns what waits for a webhook and is due, or with `all` whatever waits: some events of each stream, in order.
    package func lines(of held: HeldWebhook, all: Bool = false) async throws -> [WebhookMessage] {
        try await write(
            Queries.readWebhookLines, .int4(held.id), .int4(Int32(Self.windowEventsMax)), .bool(all)
        ).map { try WebhookMessage(row: $0, line: $0.int8("line"), attempts: Int($0.int4("attempts"))) }
    }

    /// Moves a webhook to a position, up to which `lines` begin to wait; without one, says what became of those that wait.
    /// Renews the lease; 0 seconds give the webhook up. Returns false where this worker has it no more.
    package func move(
        _ held: HeldWebhook, to position: Int64?, lines: [WebhookLine] = [], leaseSeconds: Double = leaseSeconds
    ) async throws -> Bool {
        try await write(Queries.moveWebhook, held.parameters(movingTo: position, lines, leaseSeconds: leaseSeconds))
            .count > 0
    }

    /// Sets a webhook's state, with its reason and the length of the rest.
    package func set(
        _ held: HeldWebhook, to state: Webhook.State, because reason: String?, rests: Int = 0, seconds: Double = 0
    ) async throws -> Bool {
        try await write(
            Queries.restWebhook,
            held.parameters + [.text(state.rawValue), .text(reason), .int4(Int32(clamping: rests)), .float8(seconds)]
        ).count > 0
    }
}
