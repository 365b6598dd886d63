import Postgres
import SeededRandom
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("Imports go on where they stopped, and check the nearest expiries first")
struct ImportTests {
    static let file = ImportedFile(name: "a.ndjson", byteCount: 1_000, firstBytes: [1], lastBytes: [2])

    /// Stores `words` as the part of a file with these lines, ten bytes each.
    static func store(
        _ words: [String], as lines: Range<Int64>, of ongoing: Import, bad: Int64 = 0, in test: TestLedger
    ) async throws {
        let bytes = (lines.lowerBound - 1) * 10..<(lines.upperBound - 1) * 10
        _ = try await test.ledger.intake.store(
            words.map { Upload(appID: test.app.id, customer: $0, receipt: Array($0.utf8), imported: true) },
            completing: ImportedPart(of: ongoing, lines: lines, bytes: bytes, badLines: bad))
    }

    @Test("An import goes on at the first line that is not stored, in whatever order parts are stored")
    func parts() async throws {
        try await withLedger { test in
            let first = try await test.ledger.intake.openImport(of: Self.file)
            #expect(first.nextLine == 1 && first.nextByte == 0)
            try await Self.store(["c"], as: 21..<31, of: first, in: test)
            #expect(try await test.ledger.intake.openImport(of: Self.file).nextLine == 1)
            try await Self.store(["a"], as: 1..<11, of: first, bad: 3, in: test)
            let second = try await test.ledger.intake.openImport(of: Self.file)
            #expect(second.id == first.id && second.startedAt == first.startedAt)
            #expect(second.nextLine == 11 && second.nextByte == 100 && second.badLines == 3)
            try await Self.store(["b"], as: 11..<21, of: second, in: test)
            #expect(try await test.ledger.intake.openImport(of: Self.file).nextByte == 300)
            let again = try await test.ledger.intake.openImport(of: Self.file, again: true)
            #expect(again.nextLine == 1 && again.badLines == 0)
        }
    }

    @Test("Another name, size or edge is another file")
    func identity() async throws {
        try await withLedger { test in
            let one = try await test.ledger.intake.openImport(of: Self.file)
            try await Self.store(["a"], as: 1..<11, of: one, in: test)
            for other in [
                ImportedFile(name: "b.ndjson", byteCount: 1_000, firstBytes: [1], lastBytes: [2]),
                ImportedFile(name: "a.ndjson", byteCount: 1_001, firstBytes: [1], lastBytes: [2]),
                ImportedFile(name: "a.ndjson", byteCount: 1_000, firstBytes: [1], lastBytes: [3]),
                ImportedFile(name: "a.ndjson", byteCount: 1_000, firstBytes: [0], lastBytes: [2]),
            ] {
                let opened = try await test.ledger.intake.openImport(of: other)
                #expect(opened.id != one.id && opened.nextLine == 1)
            }
        }
    }

    @Test("A part is marked if and only if its receipts are stored")
    func together() async throws {
        try await withLedger { test in
            let ongoing = try await test.ledger.intake.openImport(of: Self.file)
            let part = ImportedPart(of: ongoing, lines: 1..<2, bytes: 0..<10)
            let upload = Upload(appID: test.app.id, customer: "a", receipt: [1], imported: true, storefront: "\0")
            await #expect(throws: DatabaseError.self) {
                _ = try await test.ledger.intake.store([upload], completing: part)
            }
            #expect(try await test.ledger.intake.openImport(of: Self.file).nextLine == 1)
            #expect(try await test.text("SELECT count(*) FROM ledger.receipt") == "0")
            // Beyond the file's end: the receipts of the part must not stay either.
            let beyond = ImportedPart(of: ongoing, lines: 1..<2, bytes: 0..<2_000)
            await #expect(throws: DatabaseError.self) {
                _ = try await test.ledger.intake.store(
                    [Upload(appID: test.app.id, customer: "a", receipt: [1], imported: true)], completing: beyond)
            }
            #expect(try await test.text("SELECT count(*) FROM ledger.receipt") == "0")
        }
    }

    @Test("A finished import with bad lines is read again, one without is not")
    func finish() async throws {
        try await withLedger { test in
            let ongoing = try await test.ledger.intake.openImport(of: Self.file)
            try await Self.store(["a"], as: 1..<11, of: ongoing, in: test)
            #expect(try await test.ledger.intake.finish(ongoing) == 0)
            #expect(try await test.ledger.intake.openImport(of: Self.file).nextLine == 11)
            try await Self.store(["b"], as: 11..<21, of: ongoing, bad: 2, in: test)
            #expect(try await test.ledger.intake.finish(ongoing) == 2)
            let again = try await test.ledger.intake.openImport(of: Self.file)
            #expect(again.nextLine == 1 && again.badLines == 0)
        }
    }

    @Test("Bad lines count once, however many runs of one file store their part")
    func sideBySide() async throws {
        try await withLedger(connections: 4) { test in
            let runs = try await [
                test.ledger.intake.openImport(of: Self.file), test.ledger.intake.openImport(of: Self.file),
            ]
            try await withThrowingTaskGroup(of: Void.self) { group in
                for run in runs {
                    group.addTask { try await Self.store(["a"], as: 1..<11, of: run, bad: 1, in: test) }
                }
                try await group.waitForAll()
            }
            try await Self.store(["b"], as: 11..<21, of: runs[0], bad: 2, in: test)
            #expect(try await test.ledger.intake.finish(runs[0]) == 3)
        }
    }

    @Test("Many writers of the same receipts and customers never deadlock and store nothing twice")
    func manyWriters() async throws {
        try await withLedger(connections: 8) { test in
            var random = Seeded(seed: 4_711)
            print("order of seed 4711")
            let uploads = (0..<200).map {
                Upload(
                    appID: test.app.id, customer: "c\($0 % 37)", receipt: Array("r\($0 % 150)".utf8), imported: true,
                    provisional: Provisional(productID: "monthly", until: test.at(5)))
            }
            let orders = (0..<32).map { _ in uploads.shuffled(using: &random) }
            let ongoing = try await test.ledger.intake.openImport(of: Self.file)
            let new = try await withThrowingTaskGroup(of: Int.self) { group in
                for (index, order) in orders.enumerated() {
                    group.addTask {
                        let first = Int64(index)
                        let part = ImportedPart(of: ongoing, lines: first + 1..<first + 2, bytes: first..<first + 1)
                        return try await test.ledger.intake.store(order, completing: part).count(where: \.isNew)
                    }
                }
                return try await group.reduce(0, +)
            }
            #expect(new == 150)
            try await test.expectRows(
                """
                SELECT (SELECT count(*) FROM ledger.receipt) AS a, (SELECT count(*) FROM ledger.customer) AS b,
                       (SELECT count(*) FROM ledger.poll_schedule) AS c, (SELECT stored_lines FROM ledger.import) AS d
                """, [[150, 37, 150, "{[1,33)}"]])
            let pairs = Set(uploads.map { "\($0.receipt) \($0.customer ?? "")" }).count
            #expect(try await test.text("SELECT count(*) FROM ledger.upload") == "\(pairs)")
            #expect(try await test.text("SELECT count(*) FROM ledger.provisional") == "\(pairs)")
        }
    }

    @Test("Of imported receipts the nearest to its expiry is claimed first, long lapsed last, unknown in between")
    func turns() async throws {
        try await withLedger { test in
            let expiries: [(name: String, days: Double?)] = [
                ("lapsed", -66), ("unknown", nil), ("year", 360), ("month", 25), ("retry", -40), ("yesterday", -1),
                ("tomorrow", 0.5), ("ever", 1_000_000), ("ancient", -20_000),
            ]
            _ = try await test.ledger.intake.store(
                expiries.map { expiry in
                    Upload(
                        appID: test.app.id, customer: expiry.name, receipt: Array(expiry.name.utf8), imported: true,
                        expiresAt: expiry.days.map(test.at))
                })
            var order: [String] = []
            for _ in expiries {
                let quota = Quota(app: test.app, lane: .imported, receipts: 1)
                let claim = try #require(
                    try await test.ledger.claims.claim(for: test.worker, [quota], leaseSeconds: 60).first)
                #expect(abs((claim.scheduledFor - test.now).milliseconds) < 60_000)
                order.append(String(decoding: claim.receipt, as: UTF8.self))
            }
            #expect(
                order == [
                    "tomorrow", "yesterday", "month", "retry", "year", "ever", "unknown", "lapsed", "ancient",
                ])
        }
    }

    @Test("An imported receipt is overdue by the time it waits, and its turn is shown as no time")
    func honest() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a", imported: true)
            let lane = try #require(try await test.ledger.operations.status().lanes.first)
            #expect(lane.lane == .imported && lane.due == 1 && lane.overdue == 0)
            let next = try #require(lane.nextDueAt)
            #expect(abs((next - test.now).milliseconds) < 60_000)
            #expect(try await test.ledger.customers.receipts(id: receipt).first?.nextCheckAt == next)
        }
    }

    @Test("An imported receipt that is handed back unasked is at the front of the line")
    func handedBack() async throws {
        try await withLedger { test in
            let quota = Quota(app: test.app, lane: .imported, receipts: 1)
            for (name, days) in [("near", 1.0), ("far", 9.0)] {
                _ = try await test.ledger.intake.store([
                    Upload(
                        appID: test.app.id, customer: name, receipt: Array(name.utf8), imported: true,
                        expiresAt: test.at(days))
                ])
            }
            let claimed = try await test.ledger.claims.claim(for: test.worker, [quota], leaseSeconds: 60)
            try await test.ledger.claims.release(claimed)
            let again = try await test.ledger.claims.claim(for: test.worker, [quota], leaseSeconds: 60)
            #expect(again.map(\.receiptID) == claimed.map(\.receiptID) && claimed.count == 1)
        }
    }

    @Test("A customer's own upload of an imported receipt takes it out of the line, asked about in five seconds")
    func uploadedToo() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a", imported: true)
            #expect(try await test.upload("a") == receipt)
            try await test.expectRows(
                """
                SELECT lane, due_at > now() AS waits, due_at < now() + interval '1 minute' AS soon
                FROM ledger.poll_schedule
                """, [["new", true, true]])
        }
    }

    @Test("What waits is counted by app, until Apple answers")
    func waiting() async throws {
        try await withLedger { test in
            #expect(try await test.ledger.intake.waiting().map(\.receipts) == [0])
            let receipt = try await test.upload("a", imported: true)
            try await test.upload("b")
            #expect(
                try await test.ledger.intake.waiting() == [
                    WaitingReceipts(bundleID: "com.example.app", receipts: 2, callsPerSecond: 0, hasWorker: true)
                ])
            try await test.check(receipt, Answer(from: test.at(-9), asOf: test.at(-1)))
            #expect(try await test.ledger.intake.waiting().map(\.receipts) == [1])
        }
    }
}
