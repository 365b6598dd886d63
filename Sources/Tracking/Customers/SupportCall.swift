import Postgres
import SQL
package import Subscriptions

/// What a person asks Apple to change.
package struct WantedSupportCall: Sendable, Hashable {
    package enum Kind: String, Sendable, CaseIterable {
        /// One subscription is extended.
        case extend
        /// All subscriptions of a product are extended.
        case extendAll = "extend_all"
        /// What was used of a purchase.
        case consumption
        /// The account token of a purchase.
        case accountToken = "account_token"
    }

    package let kind: Kind
    package let environment: StoreEnvironment
    /// The transaction or product that it is about.
    package let subject: String
    /// What is asked, as JSON. The same text about the same subject is the same request.
    package let request: String?
}

/// A stored support call.
package struct SupportCall: Sendable, Hashable {
    package enum Outcome: String, Sendable, CaseIterable {
        /// No answer is known yet.
        case sent
        /// Apple did it.
        case done
        /// Apple did not do it.
        case refused
        /// Nothing is known of it.
        case failed
        /// The customer did not consent, so nothing was sent.
        case withheld
    }

    /// The identifier of the request, a UUID.
    package let requestID: String
    package let outcome: Outcome
    package let extendedUntil: Instant?
    package let attempts: Int32
    package let answeredAt: Instant?

    init(row: Row) throws {
        requestID = try row.text("request_id")
        outcome = try row.word("outcome")
        extendedUntil = try row.instantIfPresent("extended_until")
        attempts = try row.int4("attempts")
        answeredAt = try row.instantIfPresent("answered_at")
    }
}

extension LedgerSupport {
    /// Stores a call before it is made, with its author. A call that was made before is the same one: with outcome `done` it
    /// is not to be made again, unless `again` asks for another one. Throws `busy` while it is being made elsewhere.
    package func open(
        _ wanted: WantedSupportCall, of app: App, for customer: String? = nil, again: Bool = false
    ) async throws -> SupportCall {
        try await database.transaction { transaction in
            let known = try find(wanted, of: app, in: transaction)
            let isDone = known?.call.outcome == .done
            guard let known, !known.isOver, !isDone || !again else {
                return try store(wanted, of: app, for: customer, repeating: nil, in: transaction)
            }
            if isDone { return known.call }
            guard known.call.outcome != .sent || !known.isRecent else { throw Self.isUnderWay }
            return try store(wanted, of: app, for: customer, repeating: known.call, in: transaction)
        }
    }

    /// Notes that a customer did not consent to a consumption report: nothing is sent. Returns a call made before instead.
    package func withhold(_ wanted: WantedSupportCall, of app: App) async throws -> SupportCall {
        try await database.transaction { transaction in
            let known = try find(wanted, of: app, in: transaction).flatMap { $0.isOver ? nil : $0.call }
            if let known, known.outcome == .done { return known }
            let call = try store(wanted, of: app, for: nil, repeating: known, in: transaction)
            return try answer(call, .withheld, in: transaction)
        }
    }

    /// Stores what came of a call.
    package func close(
        _ call: SupportCall, _ outcome: SupportCall.Outcome, reason: String? = nil, code: Int? = nil,
        extendedUntil: Instant? = nil
    ) async throws -> SupportCall {
        try await database.transaction { transaction in
            try answer(call, outcome, reason: reason, code: code, until: extendedUntil, in: transaction)
        }
    }

    /// Returns the identifier of the newest extension of all subscriptions of a product; nil where there was none.
    package func massExtension(
        of product: String, in environment: StoreEnvironment, of app: App
    ) async throws -> String? {
        try await query(Queries.findMassExtension, .int4(app.id), .text(environment.rawValue), .text(product)).first?
            .text("request_id")
    }

    /// Makes the check of the receipt due that asks about a subscription or purchase. Returns whether there is one.
    package func hastenCheck(of id: String, in environment: StoreEnvironment, of app: App) async throws -> Bool {
        let rows = try await write(Queries.hastenCheck, .int4(app.id), .text(environment.rawValue), .text(id))
        return try rows.first?.int8("receipts") ?? 0 > 0
    }

    /// Returns when a notification came, by Apple's id; nil where it did not.
    package func received(_ appleID: String, for app: App) async throws -> Instant? {
        try await query(Queries.readReceived, .int4(app.id), .text(appleID)).first?.instant("received_at")
    }

    private static let isUnderWay = LedgerError(
        .busy, "The same support call is being made just now; look at its outcome in a minute.")

    /// Returns the call that was made before, whether a later one is another call, and whether it was sent within a minute.
    private func find(
        _ wanted: WantedSupportCall, of app: App, in transaction: Transaction
    ) throws -> (call: SupportCall, isOver: Bool, isRecent: Bool)? {
        try transaction.query(Queries.lockSupportCalls, .int4(app.id))
        let found = try transaction.query(
            Queries.findSupportCall, .int4(app.id), .text(wanted.environment.rawValue), .text(wanted.kind.rawValue),
            .text(wanted.subject), .jsonb(wanted.request))
        return try found.first.map { (try SupportCall(row: $0), try $0.bool("is_over"), try $0.bool("is_recent")) }
    }

    private func store(
        _ wanted: WantedSupportCall, of app: App, for customer: String?, repeating known: SupportCall?,
        in transaction: Transaction
    ) throws -> SupportCall {
        let rows =
            if let known {
                try transaction.query(Queries.repeatSupportCall, .text(known.requestID), .jsonb(wanted.request))
            } else {
                try transaction.query(
                    Queries.insertSupportCall, .int4(app.id), .text(wanted.environment.rawValue),
                    .text(wanted.kind.rawValue), .text(wanted.subject), .jsonb(wanted.request))
            }
        let call = try Self.one(rows)
        try ledger.audit(
            .supportRequested, app: app.bundleID, customer: customer,
            detail: [
                "request_id": call.requestID, "call": wanted.kind.rawValue, "subject": wanted.subject,
                "environment": wanted.environment.rawValue, "attempt": "\(call.attempts)",
            ], in: transaction)
        return call
    }

    private func answer(
        _ call: SupportCall, _ outcome: SupportCall.Outcome, reason: String? = nil, code: Int? = nil,
        until: Instant? = nil, in transaction: Transaction
    ) throws -> SupportCall {
        let rows = try transaction.query(
            Queries.answerSupportCall, .text(call.requestID), .text(outcome.rawValue), .text(reason),
            .int4(code.flatMap(Int32.init(exactly:))), .instant(until))
        return try Self.one(rows)
    }

    private static func one(_ rows: [Row]) throws -> SupportCall {
        guard let row = rows.first else {
            throw LedgerError(.notFound, "The support call is not stored any more; nothing is known of it.")
        }
        return try SupportCall(row: row)
    }
}

/// A transaction whose consumption Apple asked about without an answer since.
package struct LateConsumption: Sendable, Hashable {
    /// Hours after which an answer is late: Apple waits for twelve.
    package static let lateHours: Int32 = 10
    /// Days after which it is not mentioned any more.
    package static let daysMax: Int32 = 7
    /// The most that a status lists.
    package static let listedMax: Int32 = 100

    package let bundleID: BundleID
    package let environment: StoreEnvironment
    package let transactionID: TransactionID
    package let askedAt: Instant
}

extension LedgerOperations {
    /// Returns the transactions whose consumption Apple asked about without an answer, the longest waiting first.
    func lateConsumption() async throws -> [LateConsumption] {
        let limits = [LateConsumption.lateHours, LateConsumption.daysMax, LateConsumption.listedMax]
        return try await query(Queries.statusConsumption, limits.map { .int4($0) }).map { row in
            LateConsumption(
                bundleID: try row.id("bundle_id"), environment: try row.word("environment"),
                transactionID: try row.id("transaction_id"), askedAt: try row.instant("asked_at"))
        }
    }
}
