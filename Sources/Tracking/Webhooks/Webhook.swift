import Crypto
import Foundation
import Postgres
import SQL
package import Subscriptions

/// A receiver of events as operators see it; the columns of `perennial.webhook_now` with the same names are described.
package struct Webhook: Sendable, Hashable {
    package enum State: String, Sendable, CaseIterable {
        case on
        /// Many events in a row failed; one at a time is tried.
        case resting
        case off
    }

    package let id: Int32
    package let bundleID: BundleID?
    package let url: String
    package let kinds: [String]?
    package let environment: StoreEnvironment?
    package let concurrency: Int
    package let state: State
    package let reason: String?
    package let stateSince: Instant
    package let restUntil: Instant?
    package let position: Int64
    package let behind: Int64
    package let waiting: Int64
    package let waitingSince: Instant?
    package let hasPreviousSecret: Bool
    package let createdAt: Instant
    /// How long it may rest before it is an alert, and how long a stream may wait.
    static let restTolerated = Delay.hours(1)
    static let waitTolerated = Delay.days(1)

    fileprivate init(row: Row) throws {
        id = try row.int4("webhook_id")
        bundleID = try row.idIfPresent("bundle_id")
        url = try row.text("whole_url")
        kinds = try row.isNull("kinds") ? nil : row.texts("kinds")
        environment = try row.wordIfPresent("environment")
        concurrency = Int(try row.int2("concurrency"))
        state = try row.word("state")
        reason = try row.textIfPresent("reason")
        stateSince = try row.instant("state_since")
        restUntil = try row.instantIfPresent("rest_until")
        position = try row.int8("position")
        behind = try row.int8("behind")
        waiting = try row.int8("waiting")
        waitingSince = try row.instantIfPresent("waiting_since")
        hasPreviousSecret = try row.byteaIfPresent("sealed_previous_secret") != nil
        createdAt = try row.instant("created_at")
    }

    /// The URL without its query, which may hold a secret of the receiver.
    package var shownURL: String { String(url.prefix { $0 != "?" }) }

    /// What an operator has to look at, in one clause; nil where nothing is wrong.
    package func trouble(at now: Instant) -> String? {
        switch state {
        case .off: return reason.map { "is off: \($0.asClause)" }
        case .resting where now - stateSince > Self.restTolerated:
            return "rests since \(stateSince.iso8601): \(reason?.asClause ?? "its receiver fails")"
        case .on, .resting:
            guard let waitingSince, now - waitingSince > Self.waitTolerated else { return nil }
            return "has an event that waits since \(waitingSince.iso8601); see `perennial webhook show \(id)`"
        }
    }
}

/// The first undelivered event of a stream that waits, as `perennial.webhook_waiting_now` describes it.
package struct WaitingEvent: Sendable, Hashable {
    package let position: Int64
    package let kind: String
    package let bundleID: BundleID
    package let originalTransactionID: String?
    package let customer: String?
    package let attempts: Int
    package let nextAt: Instant
    package let since: Instant
    package let status: Int?
    package let reason: String?

    fileprivate init(row: Row) throws {
        position = try row.int8("position")
        kind = try row.text("kind")
        bundleID = try row.id("bundle_id")
        originalTransactionID = try row.textIfPresent("original_transaction_id")
        customer = try row.textIfPresent("customer")
        attempts = Int(try row.int4("attempts"))
        nextAt = try row.instant("next_at")
        since = try row.instant("since")
        status = try row.int2IfPresent("status").map { Int($0) }
        reason = try row.textIfPresent("reason")
    }
}

/// Where in the feed a webhook begins.
package enum WebhookStart: Sendable, Hashable {
    /// After everything that the feed has now.
    case now
    /// With the event at a position.
    case position(Int64)
    /// With the events recorded from an instant on.
    case instant(Instant)

    package static let beginning = WebhookStart.position(1)

    /// Reads `now`, `beginning`, a position or an instant; throws `invalid` for anything else.
    package init(_ text: String) throws(LedgerError) {
        let word: WebhookStart? = ["now": .now, "beginning": .beginning][text]
        let position = Int64(text).flatMap { $0 > 0 ? WebhookStart.position($0) : nil }
        guard let start = word ?? position ?? Instant(iso8601: text).map(WebhookStart.instant) else {
            throw LedgerError(
                .invalid, "The start is now, beginning, a position from 1 on, or an instant like 2026-11-20T12:00:00Z.")
        }
        self = start
    }
}

/// A secret that signs messages: `whsec_` and Base64, as Standard Webhooks has it.
package struct WebhookSecret: Sendable, Hashable {
    private static let prefix = "whsec_"
    /// The bytes that a secret may have, and those of one that we make.
    static let bytesAllowed = 24...64
    static let bytesUsual = 32

    package let text: String
    package let bytes: [UInt8]

    /// Reads a secret; throws `invalid` for one of another form or length.
    package init(_ text: String) throws(LedgerError) {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard text.hasPrefix(Self.prefix), let data = Data(base64Encoded: String(text.dropFirst(Self.prefix.count))),
            Self.bytesAllowed.contains(data.count)
        else {
            throw LedgerError(
                .invalid,
                "A webhook's secret is whsec_ and the Base64 of 24 to 64 bytes; leave it out to have one made.")
        }
        self.text = text
        bytes = Array(data)
    }

    init() {
        bytes = SymmetricKey(size: SymmetricKeySize(bitCount: Self.bytesUsual * 8)).withUnsafeBytes { Array($0) }
        text = Self.prefix + Data(bytes).base64EncodedString()
    }

    /// The owner to which a webhook's secrets are sealed.
    static func owner(_ id: Int32) -> String { "webhook \(id)" }
}

extension LedgerWebhooks {
    /// The range of the most calls at a time, and the usual number.
    package static let concurrencyAllowed = 1...64
    package static let concurrencyUsual = 16
    /// The most secrets of a webhook that sign.
    static let secretsMax = 10

    /// Adds a webhook, with a new secret where none is given. Returns it and the secret, which cannot be read again.
    /// Throws `invalid` for a URL, a kind, a concurrency or a start that cannot be, `unknownApp` for an unknown app.
    package func add(
        url: String, app bundleID: BundleID? = nil, kinds: [String]? = nil, environment: StoreEnvironment? = nil,
        concurrency: Int = concurrencyUsual, secret: WebhookSecret? = nil, from start: WebhookStart = .now
    ) async throws -> (webhook: Webhook, secret: WebhookSecret) {
        let address = try WebhookAddress(url)
        let kinds = try kinds.map(Self.known)
        try Self.requireInRange(concurrency: concurrency)
        let seal = try ledger.apps.requiredSeal()
        let app: Int32? = if let bundleID { try await ledger.apps.app(bundleID).id } else { nil }
        let position = try await position(of: start)
        let secret = secret ?? WebhookSecret()
        let id = try await database.transaction { transaction in
            let id = try transaction.query(Queries.reserveWebhook)[0].int4("webhook_id")
            try transaction.query(
                Queries.insertWebhook, .int4(id), .int4(app), .text(address.url), .texts(kinds ?? []),
                .text(environment?.rawValue), .int2(Int16(concurrency)),
                .bytea(try seal.seal(secret.text, for: WebhookSecret.owner(id))), .int8(position))
            try ledger.audit(
                .webhookAdded, app: bundleID, detail: ["webhook": "\(id)", "host": address.host], in: transaction)
            return id
        }
        return (try await webhook(id), secret)
    }

    /// Returns every webhook; with `bundleID` those of that app alone, with `id` that one alone.
    package func all(of bundleID: BundleID? = nil, id: Int32? = nil) async throws -> [Webhook] {
        try await query(Queries.readWebhooks, .int4(id), .text(bundleID?.text)).map(Webhook.init(row:))
    }

    /// Returns the webhooks that an operator has to look at, each with what is wrong.
    package func troubles() async throws -> [(id: Int32, trouble: String)] {
        let now = try await ledger.now()
        return try await all().compactMap { webhook in webhook.trouble(at: now).map { (webhook.id, $0) } }
    }

    /// Returns a webhook; throws `notFound` where there is none, or none of `bundleID`.
    package func webhook(_ id: Int32, of bundleID: BundleID? = nil) async throws -> Webhook {
        guard let webhook = try await all(of: bundleID, id: id).first else { throw Self.unknown(id) }
        return webhook
    }

    /// Returns what waits for a webhook, the oldest first, at most `limit`.
    package func waiting(for id: Int32, limit: Int32 = 100) async throws -> [WaitingEvent] {
        try await query(Queries.readWebhookWaiting, .int4(id), .int4(limit)).map(WaitingEvent.init(row:))
    }

    /// Changes a webhook; nil keeps. App, kinds and environment never change: another filter is another webhook.
    package func set(_ id: Int32, url: String? = nil, concurrency: Int? = nil, isOn: Bool? = nil) async throws {
        let address = try url.map { try WebhookAddress($0) }
        if let concurrency { try Self.requireInRange(concurrency: concurrency) }
        let state = isOn.map { $0 ? "on" : "off" }
        let detail = ["host": address?.host, "concurrency": concurrency.map { "\($0)" }, "state": state]
        try await change(id, audited: .webhookChanged, detail: detail.compactMapValues(\.self)) { transaction, held in
            try transaction.query(
                Queries.setWebhook, .int4(id), .text(address?.url), .int2(concurrency.map { Int16($0) }), .bytea(nil),
                .bytea(nil))
            guard let state else { return }
            try transaction.query(
                Queries.restWebhook, held.parameters + [.text(state), .text(nil), .int4(0), .float8(0)])
        }
    }

    /// Removes a webhook with everything that waits for it.
    package func remove(_ id: Int32) async throws {
        try await change(id, audited: .webhookRemoved) { transaction, _ in
            try transaction.query(Queries.removeWebhook, .int4(id))
        }
    }

    /// Gives a webhook another secret; those before sign too, until this is called with `finish`, which makes no new one.
    /// Returns the new secret, which cannot be read again. Throws `exists` where ``secretsMax`` sign.
    package func rotateSecret(
        of id: Int32, to secret: WebhookSecret? = nil, finish: Bool = false
    ) async throws -> WebhookSecret? {
        let seal = try ledger.apps.requiredSeal()
        let new = finish ? nil : secret ?? WebhookSecret()
        try await change(id, audited: .webhookSecretRotated, detail: ["finished": "\(finish)"]) { transaction, _ in
            let rows = try transaction.query(Queries.readWebhooks, .int4(id), .text(nil))
            let signing = try secrets(of: id, in: rows[0])
            let present = new ?? signing[0]
            // Which of them the receiver has is not known: the answer of a rotation may be lost, or a finish forgotten.
            let others = finish ? [] : signing.filter { $0 != present }.map(\.text)
            guard others.count < Self.secretsMax else {
                throw LedgerError(
                    .exists,
                    "\(Self.secretsMax) secrets of webhook \(id) sign, which is the most; when its receiver has the newest "
                        + "one, run `perennial webhook rotate-secret \(id) --finish`.")
            }
            let sealed = try [present.text, others.joined(separator: " ")].map {
                try $0.isEmpty ? [] : seal.seal($0, for: WebhookSecret.owner(id))
            }
            try transaction.query(
                Queries.setWebhook, .int4(id), .text(nil), .int2(nil), .bytea(sealed[0]), .bytea(sealed[1]))
        }
        return new
    }

    /// Skips the event that waits at a position: its stream goes on. Throws `notFound` where no stream waits there.
    package func skip(_ position: Int64, of id: Int32, because reason: String) async throws {
        try ManualDecision.requireWords(reason, "A reason", charactersMax: ManualDecision.reasonCharactersMax)
        let detail = ["position": "\(position)", "reason": reason]
        try await change(id, audited: .webhookEventSkipped, detail: detail) { transaction, held in
            guard let row = try transaction.query(Queries.findWebhookLine, .int4(id), .int8(position)).first else {
                throw LedgerError(
                    .notFound,
                    "Nothing waits for webhook \(id) at position \(position); see `perennial webhook show \(id)`.")
            }
            let stream = WebhookStream(of: try row.text("stream_of"), id: try row.int8("stream_id"))
            let line = WebhookLine(stream: stream, position: position, done: position)
            try transaction.query(Queries.moveWebhook, held.parameters(movingTo: nil, [line], leaseSeconds: 0))
        }
    }

    /// Sends the feed from a start on once more. Throws `invalid` for a start ahead of the webhook.
    package func replay(_ id: Int32, from start: WebhookStart) async throws {
        let position = try await position(of: start)
        try await change(id, audited: .webhookReplayed, detail: ["after": "\(position)"]) { transaction, held in
            guard position <= held.position else {
                throw LedgerError(
                    .invalid,
                    "Webhook \(id) is at position \(held.position), and a replay goes back; give an earlier start.")
            }
            try transaction.query(Queries.replayWebhook, .int4(id), .int8(position))
        }
    }

    /// Makes everything that waits due now, and ends a rest.
    package func retry(_ id: Int32) async throws {
        try await change(id, audited: .webhookRetried) { transaction, _ in
            try transaction.query(Queries.retryWebhook, .int4(id))
        }
    }

    /// Returns the secrets that sign, the present one first.
    package func secrets(of id: Int32) async throws -> [WebhookSecret] {
        let rows = try await query(Queries.readWebhooks, .int4(id), .text(nil))
        guard let row = rows.first else { throw Self.unknown(id) }
        return try secrets(of: id, in: row)
    }

    func secrets(of id: Int32, in row: Row) throws -> [WebhookSecret] {
        let seal = try ledger.apps.requiredSeal()
        return try [row.bytea("sealed_secret"), row.byteaIfPresent("sealed_previous_secret")].compactMap(\.self)
            .flatMap { try seal.open($0, for: WebhookSecret.owner(id)).split(separator: " ") }
            .map { try WebhookSecret(String($0)) }
    }

    /// Changes a webhook by hand, which takes it from its worker, and records who did it.
    private func change(
        _ id: Int32, audited action: AuditedAction, detail: [String: String] = [:],
        _ body: @escaping @Sendable (Transaction, HeldWebhook) throws -> Void
    ) async throws {
        try await database.transaction { transaction in
            guard let row = try transaction.query(Queries.seizeWebhook, .int4(id)).first else {
                throw Self.unknown(id)
            }
            try body(transaction, try HeldWebhook(row: row))
            try ledger.audit(
                action, app: try row.idIfPresent("bundle_id"),
                detail: detail.merging(["webhook": "\(id)"]) { own, _ in own }, in: transaction)
        }
    }

    /// Returns the position after which a start lies; throws `invalid` for one beyond the feed.
    private func position(of start: WebhookStart) async throws -> Int64 {
        let newest = try await ledger.feed.head().position
        switch start {
        case .now: return newest
        case .position(let position):
            guard position <= newest + 1 else {
                throw LedgerError(
                    .invalid, "The feed ends at position \(newest); give a position up to \(newest + 1), or now.")
            }
            return position - 1
        case .instant(let instant):
            guard instant <= (try await ledger.now()) else {
                throw LedgerError(
                    .invalid, "\(instant.iso8601) is in the future; give an instant that is over, or now.")
            }
            return try await query(Queries.findWebhookStart, .instant(instant)).first?.int8("position") ?? 0
        }
    }

    /// Returns the kinds, each once; throws `invalid` for one that no event has.
    private static func known(_ kinds: [String]) throws(LedgerError) -> [String] {
        guard !kinds.isEmpty else {
            throw LedgerError(.invalid, "Name at least one kind of event, or leave kinds out.")
        }
        let known = EventKind.allCases.map(\.rawValue)
        if let strange = kinds.first(where: { !known.contains($0) }) {
            let hint = known.nearest(to: strange).map { "the nearest is \($0)" } ?? "docs/lifecycle.md has them all"
            throw LedgerError(.invalid, "No event has the kind \(strange.prefix(255)); \(hint).")
        }
        return known.filter { kinds.contains($0) }
    }

    private static func requireInRange(concurrency: Int) throws(LedgerError) {
        guard concurrencyAllowed.contains(concurrency) else {
            throw LedgerError(.invalid, "A webhook makes 1 to 64 calls at a time; give a concurrency in that range.")
        }
    }

    private static func unknown(_ id: Int32) -> LedgerError {
        LedgerError(.notFound, "There is no webhook \(id); see `perennial webhook list`.")
    }
}

extension String {
    /// A sentence as the end of another one, to which the full stop belongs.
    fileprivate var asClause: String { prefix(1).lowercased() + dropFirst().prefix(count - (hasSuffix(".") ? 2 : 1)) }
}
