import Crypto
import Foundation
import Postgres
import SQL
package import Subscriptions

/// The identity of an imported file.
package struct ImportedFile: Sendable, Hashable {
    /// The file name without folders.
    package let name: String
    /// The size in bytes.
    package let byteCount: Int64
    /// SHA-256 of the first and the last megabyte.
    package let edges: [UInt8]

    /// Creates the identity of a file from its first and last bytes: a megabyte of each, or all there are.
    package init(name: String, byteCount: Int64, firstBytes: [UInt8], lastBytes: [UInt8]) {
        self.name = name
        self.byteCount = byteCount
        edges = Array(SHA256.hash(data: firstBytes + lastBytes))
    }
}

/// The import of one file, started now or earlier.
package struct Import: Sendable {
    /// The key of the import.
    package let id: Int64
    /// The time when it was first started.
    package let startedAt: Instant
    /// The line, from 1, before which nothing is to be read: the first that is not stored, or after bad lines the first.
    package let nextLine: Int64
    /// The byte offset of that line.
    package let nextByte: Int64
    /// The lines that are stored. The others are to be read, also where an earlier run found them bad.
    package let stored: [Range<Int64>]
}

/// A part of an imported file whose lines are stored, or found bad, in one transaction.
package struct ImportedPart: Sendable {
    let importID: Int64
    let lines: Range<Int64>
    let bytes: Range<Int64>
    /// The lines of the submissions that are stored with it.
    private var submitted: [Int64]
    private var badLines: [Int64]

    /// Creates a part: lines `lines` (from 1) at `bytes` of the file. Submissions are made of the lines `submitted`; the
    /// lines `badLines` cannot be stored.
    package init(
        of ongoing: Import, lines: Range<Int64>, bytes: Range<Int64>, submitted: [Int64] = [], badLines: [Int64] = []
    ) {
        (importID, self.lines, self.bytes) = (ongoing.id, lines, bytes)
        (self.submitted, self.badLines) = (submitted, badLines)
    }

    /// Makes the lines of failed submissions bad ones; the other submissions remain.
    mutating func leaveOut(_ results: [Result<some Any, any Error>]) {
        let failed = Set(results.indices.filter { (try? results[$0].get()) == nil })
        badLines += failed.map { submitted[$0] }
        submitted = submitted.indices.filter { !failed.contains($0) }.map { submitted[$0] }
    }

    func mark(in transaction: Transaction) throws {
        try transaction.query(
            Queries.markImport,
            .int8(importID), .int8(lines.lowerBound), .int8(lines.upperBound), .int8(bytes.lowerBound),
            .int8(bytes.upperBound), .int8s(badLines))
    }
}

/// Receipts of one app that wait for Apple's first answer.
package struct WaitingReceipts: Sendable, Hashable {
    package let bundleID: BundleID
    /// The number of receipts.
    package let receipts: Int64
    /// The app's rate limit for calls to Apple, in calls a second; 0 is unlimited.
    package let callsPerSecond: Double
    /// Whether any worker sent a heartbeat in the last two minutes.
    package let hasWorker: Bool
}

extension LedgerIntake {
    /// Starts the import of a file or continues an earlier one; `again` discards its progress.
    package func openImport(of file: ImportedFile, again: Bool = false) async throws -> Import {
        let rows = try await write(
            Queries.openImport, [.text(file.name), .int8(file.byteCount), .bytea(file.edges), .bool(again)],
            audited: .importOpened, detail: ["file": file.name, "bytes": "\(file.byteCount)"])
        guard let row = rows.first else { throw LedgerError(.mismatch, "The import could not be begun.") }
        return Import(
            id: try row.int8("import_id"), startedAt: try row.instant("started_at"),
            nextLine: try row.int8IfPresent("next_line") ?? 1, nextByte: try row.int8IfPresent("next_byte") ?? 0,
            stored: zip(try row.int8s("starts"), try row.int8s("ends")).map { $0..<$1 })
    }

    /// Returns, for each app by bundle id, the number of receipts that wait for Apple's first answer.
    package func waiting() async throws -> [WaitingReceipts] {
        try await query(Queries.waiting).map { row in
            WaitingReceipts(
                bundleID: BundleID(try row.text("bundle_id")), receipts: try row.int8("receipts"),
                callsPerSecond: try row.float8("rate"), hasWorker: try row.bool("has_worker"))
        }
    }
}
