import Postgres
package import Subscriptions

/// A period in which Apple's answers about an app were not trusted.
package struct Incident: Sendable {
    /// The kind of an incident.
    package enum Kind: String, Sendable {
        /// Once-verified receipts were refused in bulk; during the incident each refusal counts as no answer.
        case refusals
        /// Answers were dated more than an hour ahead of the database's clock: Apple's or the database's is wrong. Each
        /// counts as no answer.
        case clock
    }

    /// The app.
    package let bundleID: BundleID
    /// The kind of the incident.
    package let kind: Kind
    /// The time of the first such answer, by the database's clock.
    package let openedAt: Instant
    /// The end; nil while the incident is open.
    package let closedAt: Instant?
    /// Answers about once-verified receipts during the incident; a receipt that was refused repeatedly counts once.
    package let asked: Int64
    /// Once-verified receipts refused during the incident, or answers that were not trusted.
    package let refused: Int64
    /// The reason of the last refusal or untrusted answer, in one sentence.
    package let lastReason: String

    init(row: Row) throws {
        bundleID = BundleID(try row.text("bundle_id"))
        kind = try row.word("kind")
        openedAt = try row.instant("opened_at")
        closedAt = try row.instantIfPresent("closed_at")
        asked = try row.int8("asked")
        refused = try row.int8("refused")
        lastReason = try row.text("last_reason")
    }
}
