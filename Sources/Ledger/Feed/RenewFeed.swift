import Postgres
import SQL

/// A change of the feed's id: cursors of the former feed are refused.
package struct FeedRenewal: Sendable, Hashable {
    /// The former id.
    package let former: String
    /// The new id.
    package let feed: String

    init(row: Row) throws {
        former = try row.text("former_id")
        feed = try row.text("feed_id")
    }
}

extension LedgerFeed {
    /// Stores the feed's new id if this database is not the one in which the feed got its old id, as after a restore;
    /// returns nil otherwise.
    ///
    /// Readers already get the new id, and no event gets a position under the old one. This call is for the log and the
    /// audit log.
    package func checkPlace() async throws -> FeedRenewal? {
        try await write(Queries.checkFeedPlace).first.map(FeedRenewal.init(row:))
    }

    /// Gives the feed a new id, for a database that was rolled back in place, which it cannot detect itself.
    ///
    /// - Parameter former: Only a feed with this id is renewed; nil for any.
    /// - Returns: Nil when the feed's id is not `former`.
    package func renew(insteadOf former: String? = nil) async throws -> FeedRenewal? {
        try await database.transaction { transaction in
            try transaction.query(Queries.checkFeedPlace)
            guard let row = try transaction.query(Queries.renewFeed, [.text(former)]).first else { return nil }
            let renewal = try FeedRenewal(row: row)
            try ledger.audit(
                .feedRenewed, detail: ["from": renewal.former, "to": renewal.feed, "because": "by hand"],
                in: transaction)
            return renewal
        }
    }
}
