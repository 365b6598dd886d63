import Postgres

/// One row of a stored timeline, in milliseconds since 1970.
struct ReportedSpan: Sendable {
    let state: String
    let entitled: Bool
    let validFrom: Int64
    let validTo: Int64
    let knownFrom: Int64
    let knownTo: Int64
    let allowedUntil: Int64?
    /// Apple's clock of the answer that made it; nil where that answer made no event.
    let asOf: Int64?

    /// A stretch in which a lookup was refused.
    struct Refusal {
        let span: ReportedSpan
        let from: Int64
        let asOf: Int64
    }

    /// From when on this row refused lookups; nil when it refused none before `end`.
    func refusal(before end: Int64) -> Refusal? {
        guard !entitled, let asOf else { return nil }
        let from = max(validFrom, knownFrom, allowedUntil ?? .min)
        guard from < min(validTo, knownTo, end) else { return nil }
        return Refusal(span: self, from: from, asOf: asOf)
    }

    /// Every row, also those that are no longer true, by Apple's id of the subscription.
    static func all(in database: Database) async throws -> [String: [ReportedSpan]] {
        let rows = try await database.query(
            Statement(
                name: "told_spans",
                sql: """
                    SELECT s.original_transaction_id AS id, p.state::text AS state, p.entitled, lower(p.valid) AS valid_from,
                           upper(p.valid) AS valid_to, lower(p.known) AS known_from, upper(p.known) AS known_to, p.allowed_until,
                           (SELECT max(e.as_of) FROM ledger.event e
                            WHERE e.subscription_id = p.subscription_id AND e.version = p.version) AS as_of
                    FROM ledger.subscription_span p JOIN ledger.subscription s USING (subscription_id)
                    """))
        return try rows.reduce(into: [:]) { spans, row in
            func milliseconds(_ column: String) throws -> Int64? {
                try row.timestamptzIfPresent(column).map { $0 / 1_000 }
            }
            spans[try row.text("id"), default: []].append(
                ReportedSpan(
                    state: try row.text("state"), entitled: try row.bool("entitled"),
                    validFrom: try milliseconds("valid_from") ?? .min, validTo: try milliseconds("valid_to") ?? .max,
                    knownFrom: try milliseconds("known_from") ?? .min, knownTo: try milliseconds("known_to") ?? .max,
                    allowedUntil: try milliseconds("allowed_until"), asOf: try milliseconds("as_of")))
        }
    }
}
