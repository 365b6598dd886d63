import Postgres
import Subscriptions

/// A time in which Apple's answers about an app were not to be believed.
package struct Incident: Sendable {
    /// What an incident is about.
    package enum Kind: String, Sendable {
        /// Once-verified receipts were refused in bulk; each refusal in between counts as no answer.
        case refusals
        /// Answers were dated more than an hour ahead of the database's clock: Apple's or the database's is wrong. Each
        /// counts as no answer.
        case clock
    }

    /// The app.
    package let bundleID: BundleID
    /// What it is about.
    package let kind: Kind
    /// When the first such answer came, by the database's clock.
    package let openedAt: Instant
    /// When it ended; nil while it runs.
    package let closedAt: Instant?
    /// Answers about once-verified receipts in this time; a receipt that was refused again counts once.
    package let asked: Int64
    /// Once-verified receipts refused in this time, or answers that were not believed.
    package let refused: Int64
    /// Why the last one of them was not, in one sentence.
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
