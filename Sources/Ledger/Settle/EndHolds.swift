import Postgres
import SQL
import Subscriptions

extension SubscriptionLedger {
    /// Ends access where the outage allowance ran out: the only change that is made without an answer of Apple.
    ///
    /// It is kept as an observation of outcome `none`, and tells that the subscription expired. Returns how many ended.
    @discardableResult
    public func endHolds(limit: Int = 100) async throws -> Int {
        guard try await !query(Queries.findEndedHolds).isEmpty else { return 0 }
        return try await database.transaction { transaction in
            let rows = try transaction.query(Queries.lockEndedHolds, [.int4(Int32(clamping: limit))])
            let ended = try rows.map(EndedHold.init(row:))
            guard !ended.isEmpty else { return 0 }
            try writeSpans(of: ended, in: transaction)
            try writeEvents(of: ended, in: transaction)
            try writeObservations(of: ended, in: transaction)
            try transaction.query(
                Queries.endHold,
                [
                    .int8s(ended.map(\.subscriptionID)), .instants(ended.map(\.endedAt)), .int8s(ended.map(\.version)),
                    .timestamptzs(ended.map(\.recordedMicroseconds)),
                ])
            return ended.count
        }
    }

    private func writeSpans(of ended: [EndedHold], in transaction: Transaction) throws {
        try transaction.query(
            Queries.closeSpans,
            [
                .int8s(ended.map(\.subscriptionID)), .instants(ended.map(\.from)),
                .timestamptzs(ended.map(\.recordedMicroseconds)),
            ])
        let spans = ended.flatMap { hold in hold.spans.map { (hold, $0) } }
        try transaction.query(
            Queries.insertSpans,
            [
                .int8s(spans.map(\.0.subscriptionID)), .instants(spans.map(\.1.from)), .instants(spans.map(\.1.to)),
                .timestamptzs(spans.map(\.0.recordedMicroseconds)), .texts(spans.map(\.1.state.rawValue)),
                .texts(spans.map(\.1.reason.rawValue)), .bools(spans.map(\.1.state.isEntitled)),
                .texts(spans.map(\.0.productID)), .texts(spans.map(\.0.flags)), .instants(spans.map { _ in nil }),
                .int8s(spans.map(\.0.version)),
            ])
    }

    private func writeEvents(of ended: [EndedHold], in transaction: Transaction) throws {
        let kinds = ended.map { $0.isTrial ? EventKind.trialExpired : .subscriptionExpired }
        try transaction.query(
            Queries.insertEvents,
            [
                .uuids(ended.map { EventIdentity(stream: $0.key.stream, version: $0.version, ordinal: 0).bytes }),
                .int4s(ended.map(\.key.appID)), .texts(ended.map(\.key.environment.rawValue)),
                .int8s(ended.map(\.subscriptionID)), .int8s(ended.map { _ in nil }), .int8s(ended.map(\.version)),
                .int2s(ended.map { _ in 0 }), .texts(kinds.map(\.rawValue)), .int8s(ended.map(\.customerID)),
                .texts(ended.map(\.productID)), .instants(ended.map(\.endedAt)), .instants(ended.map(\.endedAt)),
                .timestamptzs(ended.map(\.recordedMicroseconds)),
                .jsonbs(ended.map { _ in #"{"reason": "unknown", "outage_allowance_ended": true}"# }),
            ])
    }

    private func writeObservations(of ended: [EndedHold], in transaction: Transaction) throws {
        let polled = ended.filter { $0.polledBy != nil }
        let ids = try transaction.query(Queries.reserveIds, [.int4(Int32(clamping: polled.count)), .int4(0)])
        try transaction.query(
            Queries.insertObservations,
            [
                .int8s(try ids.map { try $0.int8("id") }), .int8s(polled.map(\.polledBy)),
                .int4s(polled.map(\.key.appID)), .int8s(polled.map { _ in 0 }), .texts(polled.map { _ in "none" }),
                .int4s(polled.map { _ in nil }), .texts(polled.map { _ in "The outage allowance ran out." }),
                .texts(polled.map(\.key.environment.rawValue)), .instants(polled.map(\.endedAt)),
                .byteas(polled.map { _ in [] }), .byteas(polled.map { _ in nil }),
                .timestamptzs(polled.map(\.recordedMicroseconds)),
            ])
    }
}

/// A subscription whose outage allowance ran out.
private struct EndedHold: Sendable {
    let subscriptionID: Int64
    let key: SubscriptionRowKey
    let version: Int64
    let recordedMicroseconds: Int64
    let polledBy: Int64?
    let customerID: Int64?
    let from: Instant
    let endedAt: Instant
    let productID: String
    /// Separated by commas.
    let flags: String

    var isTrial: Bool { flags.split(separator: ",").contains("trial") }

    /// The stretch that was held, and the one that is over.
    var spans: [(from: Instant, to: Instant?, state: State, reason: Reason)] {
        [(from, endedAt, .awaitingRenewal, .renewal), (endedAt, nil, .expired, .unknown)]
    }

    init(row: Row) throws {
        subscriptionID = try row.int8("subscription_id")
        key = SubscriptionRowKey(
            appID: try row.int4("app_id"), environment: try row.word("environment"),
            id: OriginalTransactionID(try row.text("original_transaction_id")))
        version = try row.int8("version") + 1
        recordedMicroseconds = max(try row.timestamptz("now"), try row.timestamptz("recorded_at") + 1)
        polledBy = try row.int8IfPresent("polled_by")
        customerID = try row.int8IfPresent("customer_id")
        from = try row.instant("valid_from")
        endedAt = try row.instant("held_until")
        productID = try row.text("product_id")
        flags = try row.texts("flags").joined(separator: ",")
    }
}
