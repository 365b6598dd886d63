import Postgres
import SQL
package import Subscriptions

/// What an operator must know of the database before the first start.
package struct DatabaseExamination: Sendable, Hashable {
    /// The oldest PostgreSQL that Perennial works with, as its number.
    package static let versionMin: Int32 = 140_000

    /// PostgreSQL's version, as its number.
    package let version: Int32
    /// PostgreSQL's version, in words.
    package let versionText: String
    /// The installed version of the extension `btree_gist`; nil: it is not installed in this database.
    package let gistInstalled: String?
    /// The version of `btree_gist` that the server can install; nil: it cannot.
    package let gistAvailable: String?
    /// The database's clock.
    package let clock: Instant
    /// Whether it is a standby, which takes no writes.
    package let isStandby: Bool
    /// The account of this connection.
    package let account: String
    /// Whether the account may create the schema.
    package let mayCreate: Bool
    /// The roles that `migrate` granted rights to; empty after `migrate --no-roles`.
    package let roles: [String]
    /// The roles whose rights the account lacks, each with the first one that it lacks.
    package let lacking: [String: String]
}

/// A sealed secret that this process cannot open.
package struct UnreadableSecret: Sendable, Hashable {
    /// What is sealed.
    package enum Kind: String, Sendable {
        /// The shared secret of an app.
        case shared
        /// The key that signs requests to the Server API.
        case serverKey = "server_key"
        /// The key that signs promotional offers.
        case offerKey = "offer_key"
        /// The key of the newest order.
        case order
    }

    /// What is sealed.
    package let kind: Kind
    /// Its app.
    package let bundleID: BundleID
}

extension LedgerOperations {
    /// Looks at the database without changing it. It needs no schema. Throws `DatabaseError` where it cannot be asked.
    package func examineDatabase() async throws -> DatabaseExamination {
        guard let row = try await database.query(Statement(Queries.examineDatabase)).first else {
            throw LedgerError(.mismatch, "The database gave no answer about itself.")
        }
        let roles = try row.texts("lacking_roles")
        return DatabaseExamination(
            version: try row.int4("version"), versionText: try row.text("version_text"),
            gistInstalled: try row.textIfPresent("gist_installed"),
            gistAvailable: try row.textIfPresent("gist_available"), clock: try row.instant("clock"),
            isStandby: try row.bool("is_standby"), account: try row.text("account"),
            mayCreate: try row.bool("may_create"), roles: try row.texts("roles"),
            lacking: Dictionary(uniqueKeysWithValues: zip(roles, try row.texts("lacking"))))
    }

    /// Tries the master key on every sealed secret of apps, and on the newest key of an order. Returns how many there
    /// are, and those that it does not open; without a master key all of them.
    package func examineSecrets() async throws -> (count: Int, unreadable: [UnreadableSecret]) {
        let rows = try await query(Queries.readSealedSecrets)
        let unreadable = try rows.compactMap { row -> UnreadableSecret? in
            let kind: UnreadableSecret.Kind = try row.word("kind")
            let bundleID = BundleID(try row.text("bundle_id"))
            let owner =
                switch kind {
                case .shared: bundleID.text
                case .serverKey: LedgerApps.serverKeyOwner(bundleID)
                case .offerKey: LedgerApps.offerKeyOwner(bundleID)
                case .order: LedgerOrders.keyOwner(try row.text("order_id"))
                }
            do throws(LedgerError) {
                guard let seal = ledger.seal else { throw LedgerError(.mismatch, "There is no master key.") }
                _ = try seal.open(try sealed(in: row), for: owner)
                return nil
            } catch {
                return UnreadableSecret(kind: kind, bundleID: bundleID)
            }
        }
        return (rows.count, unreadable)
    }

    private func sealed(in row: Row) throws(LedgerError) -> [UInt8] {
        do { return try row.bytea("sealed") } catch { throw LedgerError(.mismatch, "\(error)") }
    }
}
