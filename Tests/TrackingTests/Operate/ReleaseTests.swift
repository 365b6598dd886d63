import Crypto
import Foundation
import Postgres
import SQL
import TestSupport
import Testing

@testable import Tracking

/// What `scripts/make-dump` wrote for each release.
private let releases = URL(filePath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Fixtures/releases")

/// The versions with a dump.
private func dumpedVersions() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: releases.path)
        .filter { $0.hasSuffix(".sql.gz") }.map { String($0.dropLast(".sql.gz".count)) }.sorted()
}

@Suite("What was released stays: migrations never change, and databases of releases are upgraded")
struct ReleaseTests {
    @Test("The migrations of releases are as they were; a change is a new file")
    func frozen() throws {
        let text = try String(contentsOf: releases.appending(path: "migrations.sha256"), encoding: .utf8)
        let released = text.split(separator: "\n").map(String.init)
        #expect(!released.isEmpty)
        let present = Migrations.all.map { migration in
            let digest = SHA256.hash(data: Data(migration.text.utf8))
            return digest.map { String(format: "%02x", $0) }.joined() + "  \(migration.name).sql"
        }
        #expect(Array(present.prefix(released.count)) == released)
    }

    /// The answers that do not have every field as it was; later versions may add some.
    private static let differing = """
        SELECT l.line || ' is now ' || to_jsonb(e)::text AS line
        FROM unnest($1::text[]) AS l(line)
        CROSS JOIN LATERAL perennial.entitled_at(
            l.line::jsonb ->> 'bundle_id', l.line::jsonb ->> 'customer', l.line::jsonb ->> 'entitlement',
            (l.line::jsonb ->> 'at')::timestamptz) e
        WHERE NOT to_jsonb(e) @> (l.line::jsonb -> 'answer')
        """

    @Test("There is a dump of a release")
    func dumped() throws {
        let versions = try dumpedVersions()
        #expect(!versions.isEmpty)
    }

    @Test(
        "A release's database is upgraded, violates nothing, and answers as it did", .timeLimit(.minutes(2)),
        arguments: try dumpedVersions())
    func upgraded(version: String) async throws {
        try await withTestDatabase { database, connectionString in
            try await restore(releases.appending(path: "\(version).sql.gz").path, into: connectionString)
            let ledger = SubscriptionLedger(database: database)
            let report = try await ledger.operations.migrate()
            #expect(report.total == Migrations.all.count && report.feedRenewal != nil)

            var violations: [String] = []
            // Two of the demo's months, which are a minute long.
            var terms = VerifyTerms(leaseSeconds: 60, speedup: 43_200)
            terms.secondLookSeconds = 0.02
            try await ledger.operations.verify(Set(Invariant.allCases), terms) { step in
                violations += step.violations.map { "\($0.invariant.rawValue): \($0.detail)" }
            }
            #expect(violations == [])

            let text = try await unzipped(releases.appending(path: "\(version).lookups.gz").path)
            let lines = text.split(separator: "\n").map(String.init)
            #expect(lines.count > 200)
            let differing = try await database.transaction { transaction in
                try transaction.script("SET LOCAL timezone = 'UTC'")
                return try transaction.query(.test(Self.differing), [.texts(lines)]).map { try $0.text("line") }
            }
            #expect(differing == [])
        }
    }
}
