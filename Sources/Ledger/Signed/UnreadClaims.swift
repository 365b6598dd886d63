import Postgres
import SQL
package import Subscriptions

/// A claim of Apple's signed texts that is not read, as one process saw it since it last counted.
package struct SeenClaim: Sendable, Hashable {
    /// The kind of text with the place of the claim; a word that is not known follows an equals sign.
    package let name: String
    /// Whether the claim is known and its value cannot be read.
    package let isUnreadable: Bool
    /// How many texts stated it.
    package var texts: Int
    /// One of them, as Apple signed it.
    package var example: String?
    /// The subscription or purchase that the example is about.
    package var subject: OriginalTransactionID?

    /// Creates a claim that one text stated.
    package init(name: String, isUnreadable: Bool, example: String?, subject: OriginalTransactionID?) {
        (self.name, self.isUnreadable, self.example, self.subject) = (name, isUnreadable, example, subject)
        texts = 1
    }
}

/// A claim of Apple's signed texts that is not read.
package struct CountedClaim: Sendable, Hashable {
    /// The app.
    package let bundleID: BundleID
    /// The kind of text with the place of the claim; a word that is not known follows an equals sign.
    package let name: String
    /// Whether the claim is known and its value cannot be read.
    package let isUnreadable: Bool
    /// How many texts stated it, each time that one was read.
    package let texts: Int64
    /// When it was first seen.
    package let firstSeenAt: Instant
    /// When it was last seen.
    package let lastSeenAt: Instant
}

extension LedgerIntake {
    /// The most names of claims that are kept of an app.
    package static let unreadClaimsMax: Int32 = 200
    /// The longest text that is kept as an example, in bytes.
    static let exampleBytesMax = 64 << 10
    /// Days after which a claim that no text states any more is forgotten.
    static let unreadClaimDays: Int32 = 30

    /// Counts claims that this program does not read.
    package func countUnread(_ claims: [SeenClaim], of app: Int32) async throws {
        guard !claims.isEmpty else { return }
        _ = try await write(
            Queries.countUnreadClaims,
            [
                .int4(app), .texts(claims.map(\.name)), .bools(claims.map(\.isUnreadable)),
                .int8s(claims.map { Int64($0.texts) }),
                .texts(claims.map { $0.example.flatMap { $0.utf8.count <= Self.exampleBytesMax ? $0 : nil } }),
                .texts(claims.map { $0.subject?.text }), .int4(Self.unreadClaimsMax),
            ])
    }

    /// Returns the claims that are not read, of one app or of all, the most frequent first.
    package func unreadClaims(of bundleID: BundleID? = nil) async throws -> [CountedClaim] {
        var app: Int32?
        if let bundleID { app = try await ledger.apps.app(bundleID).id }
        return try await query(Queries.readUnreadClaims, [.int4(Self.unreadClaimsMax * 5), .int4(app), .text(nil)])
            .map(CountedClaim.init(row:))
    }

    /// Returns a text that states a claim which is not read; nil where none is kept. Throws `notFound` for a claim that was
    /// not seen.
    package func unreadExample(of name: String, app bundleID: BundleID) async throws -> String? {
        let app = try await ledger.apps.app(bundleID)
        let found = try await query(Queries.readUnreadClaims, [.int4(1), .int4(app.id), .text(name)])
        guard let row = found.first else {
            throw LedgerError(
                .notFound,
                "No text about \(bundleID) stated \(name); `perennial app claims \(bundleID)` lists what is not read.")
        }
        return try row.textIfPresent("example")
    }

    /// Forgets what no text states any more.
    package func forgetUnreadClaims() async throws {
        _ = try await write(Queries.forgetUnreadClaims, [.int4(Self.unreadClaimDays)])
    }
}

extension CountedClaim {
    fileprivate init(row: Row) throws {
        bundleID = BundleID(try row.text("bundle_id"))
        name = try row.text("name")
        isUnreadable = try row.bool("is_unreadable")
        texts = try row.int8("texts")
        firstSeenAt = try row.instant("first_seen_at")
        lastSeenAt = try row.instant("last_seen_at")
    }
}
