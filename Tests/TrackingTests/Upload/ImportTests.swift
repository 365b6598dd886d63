import AppStore
import Foundation
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
        _ words: [String], as lines: Range<Int64>, of ongoing: Import, bad: [Int64] = [], in test: TestLedger
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
            try await Self.store(["a"], as: 1..<11, of: first, in: test)
            let second = try await test.ledger.intake.openImport(of: Self.file)
            #expect(second.id == first.id && second.startedAt == first.startedAt)
            #expect(second.nextLine == 11 && second.nextByte == 100 && second.stored == [1..<11, 21..<31])
            try await Self.store(["b"], as: 11..<21, of: second, in: test)
            #expect(try await test.ledger.intake.openImport(of: Self.file).nextByte == 300)
            let again = try await test.ledger.intake.openImport(of: Self.file, again: true)
            #expect(again.nextLine == 1 && again.stored == [])
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

    @Test("Bad lines are read again until they are stored, and those beside them are not")
    func badLines() async throws {
        try await withLedger { test in
            let open = { try await test.ledger.intake.openImport(of: Self.file) }
            let ongoing = try await open()
            try await Self.store(["a"], as: 1..<11, of: ongoing, in: test)
            try await Self.store(["b"], as: 11..<21, of: ongoing, bad: [13, 12, 20], in: test)
            var again = try await open()
            #expect(again.nextLine == 1 && again.nextByte == 0 && again.stored == [1..<12, 14..<20])
            try await Self.store(["c"], as: 11..<21, of: again, bad: [13], in: test)
            again = try await open()
            #expect(again.nextLine == 1 && again.stored == [1..<13, 14..<21])
            try await Self.store(["d"], as: 11..<21, of: again, in: test)
            again = try await open()
            #expect(again.nextLine == 21 && again.nextByte == 200 && again.stored == [1..<21])
        }
    }

    @Test("A line is bad whether its reading or its storing found that, and the lines of the others are stored")
    func badLinesFound() async throws {
        try await withLedger { test in
            let ongoing = try await test.ledger.intake.openImport(of: Self.file)
            let submissions = [("com.unknown", "USA"), ("com.example.app", "USA"), ("com.example.app", "\0")].map {
                Submission(
                    bundleID: BundleID($0), customer: "a", subject: .receipt(Data($0.utf8).base64EncodedString()),
                    imported: true, storefront: $1)
            }
            let part = ImportedPart(
                of: ongoing, lines: 1..<7, bytes: 0..<60, submitted: [1, 3, 5], badLines: [6])
            let tracker = Tracker(
                ledger: test.ledger, appStore: .answering(nil), options: TrackerOptions(), logger: Journal().logger)
            let stored = try await tracker.store(submissions, completing: part)
            #expect(stored.map { (try? $0.get()) != nil } == [false, true, false])
            #expect(try await test.ledger.intake.openImport(of: Self.file).stored == [2..<5])
        }
    }

    @Test("Where bad lines are many, those near them are read again too, so that the progress stays short")
    func manyBadLines() async throws {
        try await withLedger { test in
            let file = ImportedFile(name: "b.ndjson", byteCount: 100_000, firstBytes: [], lastBytes: [])
            let ongoing = try await test.ledger.intake.openImport(of: file)
            for first in stride(from: Int64(1), to: 5_001, by: 1_000) {
                let odd = stride(from: first, to: first + 1_000, by: 2).map(\.self)
                try await Self.store([], as: first..<first + 1_000, of: ongoing, bad: odd, in: test)
            }
            try await Self.store([], as: 5_001..<5_011, of: ongoing, in: test)
            let again = try await test.ledger.intake.openImport(of: file)
            #expect(again.stored.count == 1_001 && again.stored.last == 5_001..<5_011)
        }
    }

    @Test("Bad lines are kept once, however many runs of one file store their part")
    func sideBySide() async throws {
        try await withLedger(connections: 4) { test in
            let runs = try await [
                test.ledger.intake.openImport(of: Self.file), test.ledger.intake.openImport(of: Self.file),
            ]
            try await withThrowingTaskGroup(of: Void.self) { group in
                for run in runs {
                    group.addTask { try await Self.store(["a"], as: 1..<11, of: run, bad: [2], in: test) }
                }
                try await group.waitForAll()
            }
            try await Self.store(["b"], as: 11..<21, of: runs[0], bad: [11, 12], in: test)
            #expect(try await test.text("SELECT bad_lines FROM ledger.import") == "{[2,3),[11,13)}")
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
                       (SELECT count(*) FROM ledger.poll_schedule) AS c, (SELECT read_lines FROM ledger.import) AS d
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
