import Postgres
import SQL

/// That the feed got a new id: cursors of the former one are refused.
package struct FeedRenewal: Sendable, Hashable {
    /// The id until then.
    package let former: String
    /// The id since.
    package let feed: String

    init(row: Row) throws {
        former = try row.text("former_id")
        feed = try row.text("feed_id")
    }
}

extension SubscriptionLedger {
    /// Writes the feed's new id down where this is another database than the one in which it got the old one, as after a
    /// restore; nil where it is the same.
    ///
    /// Readers get the new id already, and no event gets a position under the old one: this is for the log and the audit.
    package func tendFeed() async throws -> FeedRenewal? {
        try await write(Queries.tendFeed).first.map(FeedRenewal.init(row:))
    }

    /// Gives the feed a new id, for a database that went back in time where it is, which it cannot notice by itself.
    ///
    /// - Parameter former: Only the feed of this id is renewed; nil for any.
    /// - Returns: Nil where the feed has another id than `former`.
    package func renewFeed(insteadOf former: String? = nil) async throws -> FeedRenewal? {
        try await database.transaction { transaction in
            try transaction.query(Queries.tendFeed)
            guard let row = try transaction.query(Queries.renewFeed, [.text(former)]).first else { return nil }
            let renewal = try FeedRenewal(row: row)
            try audit(
                .feedRenewed, detail: ["from": renewal.former, "to": renewal.feed, "because": "by hand"],
                in: transaction)
            return renewal
        }
    }
}
