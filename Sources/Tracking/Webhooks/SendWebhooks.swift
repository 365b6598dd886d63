import Postgres
import SQL
import Subscriptions

/// A stream of events: a subscription, a one-time purchase, or a customer's manual changes.
package struct WebhookStream: Sendable, Hashable {
    let of: String
    let id: Int64
}

/// A webhook that one worker leases. Its fence guards each write: another worker's lease, and any change by hand, makes
/// the writes of this one void.
package struct HeldWebhook: Sendable {
    /// The webhook.
    package let id: Int32
    let fence: Int64
    /// The position at the time of the lease.
    let position: Int64

    var parameters: [Parameter] { [.int4(id), .int8(fence)] }

    /// The parameters of the statement about what became of streams.
    func parameters(about lines: [WebhookLine]) -> [Parameter] {
        parameters + [
            .texts(lines.map(\.stream.of)), .int8s(lines.map(\.stream.id)), .int8s(lines.map(\.position)),
            .int8s(lines.map(\.done)), .float8s(lines.map(\.seconds)),
            .int2s(lines.map { $0.failure?.status.flatMap { Int16(exactly: $0) } }),
            .texts(lines.map(\.failure?.reason)),
        ]
    }
}

/// How a leased webhook stands.
package struct WebhookLook: Sendable {
    /// Where it sends.
    package let url: String
    /// The most calls at a time.
    package let concurrency: Int
    /// The secrets that sign, the present one first.
    package let secrets: [WebhookSecret]
    /// The position up to which everything is delivered, skipped or waiting.
    package let position: Int64
    /// The newest position of the feed.
    package let newest: Int64
    /// Whether it sends, or rests.
    package let state: Webhook.State
    /// Why it rests.
    package let reason: String?
    /// Whether the rest is not over.
    package let isResting: Bool
    /// The rests since the last success.
    package let rests: Int
    /// Whether something that waits is due.
    package let hasDue: Bool
}

/// An event as a webhook sends it.
package struct WebhookMessage: Sendable {
    package let stream: WebhookStream
    /// Its position in the feed.
    package let position: Int64
    /// Where its stream waits; nil: it does not, or the event is of a window.
    package let line: Int64?
    /// The failed calls about it.
    package let attempts: Int
    /// The id of the message, the same at each attempt; nil where there is no body.
    package let id: String?
    /// The bytes to send; nil where its stream waits, or where the event is for no webhook any more.
    package let body: [UInt8]?
}

/// A stretch of the feed as one webhook sees it.
package struct WebhookWindow: Sendable {
    /// The events in order.
    package let messages: [WebhookMessage]
    /// The position up to which they are all of the webhook's events.
    package let end: Int64
}

/// A stream that begins to wait, or what became of one that waits.
package struct WebhookLine: Sendable {
    let stream: WebhookStream
    /// From where on it waits.
    let position: Int64
    /// Up to where it is done.
    var done: Int64?
    var attempts = 0
    /// In how many seconds the event that failed is sent again.
    var seconds: Double?
    var failure: WebhookFailure?

    /// Whether it waits at a position or before it.
    package func isUpTo(_ end: Int64) -> Bool { position <= end }
}

/// Why a call failed, in words for operators: never bytes of an answer.
package struct WebhookFailure: Sendable, Hashable {
    /// The HTTP status; nil where none came.
    package var status: Int?
    /// One sentence.
    package let reason: String
    /// The seconds that the receiver asks to wait, at most a day.
    package var retryAfterSeconds: Double?
}

extension LedgerWebhooks {
    /// How long a lease lasts, in seconds.
    package static let leaseSeconds = 60.0
    /// The most events of a window, and the most positions that it searches.
    package static let windowEventsMax = 500
    static let windowPositionsMax: Int64 = 10_000

    /// Leases webhooks that no worker has, at most `limit`.
    package func lease(limit: Int) async throws -> [HeldWebhook] {
        try await write(
            Queries.leaseWebhooks, [.float8(Self.leaseSeconds), .int4(Int32(clamping: limit))]
        ).map {
            HeldWebhook(
                id: try $0.int4("webhook_id"), fence: try $0.int8("fence"), position: try $0.int8("position"))
        }
    }

    /// Returns how a leased webhook stands; nil where this worker has it no more.
    package func look(at held: HeldWebhook) async throws -> WebhookLook? {
        guard let row = try await query(Queries.lookAtWebhook, held.parameters).first else { return nil }
        return WebhookLook(
            url: try row.text("url"), concurrency: Int(try row.int2("concurrency")),
            secrets: try secrets(of: held.id, in: row), position: try row.int8("position"),
            newest: try row.int8("newest"), state: try row.word("state"), reason: try row.textIfPresent("reason"),
            isResting: try row.bool("is_resting"), rests: Int(try row.int4("rests")), hasDue: try row.bool("has_due"))
    }

    /// Returns the next events of a webhook. Streams that wait have no bodies.
    ///
    /// It runs on a connection of its own, because lookups do not wait for it.
    package func window(of held: HeldWebhook, _ look: WebhookLook) async throws -> WebhookWindow {
        let end = min(look.newest, look.position + Self.windowPositionsMax)
        let rows = try await write(
            Queries.readWebhookWindow,
            [.int4(held.id), .int8(look.position), .int8(end), .int4(Int32(Self.windowEventsMax))])
        let messages = try rows.map { try WebhookMessage(row: $0) }
        return WebhookWindow(
            messages: messages,
            end: messages.count < Self.windowEventsMax ? end : messages.last?.position ?? end)
    }

    /// Returns what waits for a webhook and is due, or with `all` whatever waits: some events of each stream, in order.
    package func lines(of held: HeldWebhook, all: Bool = false) async throws -> [WebhookMessage] {
        try await write(
            Queries.readWebhookLines, [.int4(held.id), .int4(Int32(Self.windowEventsMax)), .bool(all)]
        ).map { try WebhookMessage(row: $0, line: $0.int8("line"), attempts: Int($0.int4("attempts"))) }
    }

    /// Moves a webhook and renews its lease; `lines` begin to wait. Returns false where this worker has it no more.
    package func move(_ held: HeldWebhook, to position: Int64, lines: [WebhookLine] = []) async throws -> Bool {
        try await write(
            Queries.moveWebhook,
            held.parameters + [
                .int8(position), .float8(Self.leaseSeconds), .texts(lines.map(\.stream.of)),
                .int8s(lines.map(\.stream.id)), .int8s(lines.map(\.position)),
                .int4s(lines.map { Int32($0.attempts) }), .float8s(lines.map { $0.seconds ?? 0 }),
                .int2s(lines.map { $0.failure?.status.flatMap { Int16(exactly: $0) } }),
                .texts(lines.map(\.failure?.reason)),
            ]
        ).count > 0
    }

    /// Says what became of streams that wait. Returns false where this worker has the webhook no more.
    package func settle(_ held: HeldWebhook, _ lines: [WebhookLine]) async throws -> Bool {
        try await write(Queries.settleWebhookLines, held.parameters(about: lines)).count > 0
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

    /// Gives a webhook up, so that another worker may have it at once.
    package func release(_ held: HeldWebhook) async throws {
        _ = try await write(Queries.releaseWebhook, held.parameters)
    }
}

extension WebhookMessage {
    fileprivate init(row: Row, line: Int64? = nil, attempts: Int = 0) throws {
        stream = WebhookStream(of: try row.text("stream_of"), id: try row.int8("stream_id"))
        position = try row.int8("position")
        self.line = line
        self.attempts = attempts
        id = try row.textIfPresent("identity").map { "msg_" + EventIdentity(of: "webhook/\($0)").uuid }
        body = try row.textIfPresent("body").map { Array($0.utf8) }
    }
}
