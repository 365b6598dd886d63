import Subscriptions
import Testing
@testable import Tracking

@testable import perennial

@Suite("An import reports its progress") struct ImportProgressTests {
    @Test func `progress tells share, rate, bad lines and the time left`() {
        var progress = ImportProgress(bytesTotal: 200)
        progress.bytesDone = 50
        progress.new = 10
        progress.known = 2
        progress.bad = 1
        progress.blank = 1
        progress.line = 14
        #expect(progress.bar(elapsedSeconds: 2) == "[##........] 25%  10 new, 2 known, 1 bad, 7/s, 6 s left")
        #expect(progress.note(elapsedSeconds: 0) == "line 14, 25% of the file: 10 new, 2 known, 1 bad, 0/s")
        #expect(
            progress.summary(elapsedSeconds: 14)
                == "Receipts stored: 12 (10 new, 2 known before); lines read: 14, blank: 1, bad: 1; 1 lines/s.")
        progress.bytesTotal = nil
        #expect(progress.bar(elapsedSeconds: 1) == "10 new, 2 known, 1 bad, 14/s")
    }

    @Test func `what earlier runs did is not this run's speed`() {
        var progress = ImportProgress(bytesTotal: 1_000, bytesDone: 600, bytesBefore: 500, line: 60, linesBefore: 50)
        progress.new = 10
        #expect(progress.note(elapsedSeconds: 5) == "line 60, 60% of the file: 10 new, 0 known, 0 bad, 2/s, 20 s left")
        #expect(progress.summary(elapsedSeconds: 5).contains("lines read after line 50: 10,"))
    }

    /// The number of a line is its place in the file, with the blank ones; `--from-line` takes the same.
    @Test(arguments: [1, 2, 3, 4, 5, 7, 9])
    func `the lines read are stored, blank or bad, from any line on`(fromLine: Int) async throws {
        let good = #"{"app":"a","customer":"c","receipt":"MII="}"#
        let kinds: [(text: String, isBlank: Bool, isBad: Bool)] = [
            ("", true, false), (good, false, false), (" \t", true, false), ("bad", false, true), (good, false, false),
            ("", true, false), ("bad", false, true),
        ]
        let text = kinds.map(\.text).joined(separator: "\r\n")
        for blockLines in 1...8 {
            var progress = ImportProgress(line: fromLine - 1, linesBefore: fromLine - 1)
            var numbers: [Int] = []
            for block in try await BlockReaderTests.blocks(text, LineLimits(blockLinesMax: blockLines)) {
                var stored = StoredBlock(reading: block, fromLine: fromLine, lineBytesMax: 99)
                let upload = StoredUpload(receiptID: ReceiptID(1), isNew: true, customer: "c")
                stored.count(stored.waiting.map { _ in .success(upload) })
                progress.add(stored)
                numbers += stored.bad.map(\.number)
            }
            let read = kinds.enumerated().dropFirst(fromLine - 1)
            #expect(progress.blank == read.count(where: \.element.isBlank))
            #expect(numbers == read.filter(\.element.isBad).map { $0.offset + 1 } && progress.bad == numbers.count)
            #expect(progress.line - progress.linesBefore == read.count)
            #expect(progress.stored + progress.blank + progress.bad == read.count)
        }
    }

    @Test func `what earlier runs stored is neither read nor counted among the lines read`() async throws {
        let text = (1...9).map { $0 == 5 ? "bad" : "worse \($0)" }.joined(separator: "\n")
        var progress = ImportProgress()
        for block in try await BlockReaderTests.blocks(text, LineLimits(blockLinesMax: 4)) {
            var stored = StoredBlock(reading: block, fromLine: 1, without: [1..<5, 6..<8, 9..<20], lineBytesMax: 99)
            stored.count([])
            progress.add(stored)
        }
        #expect(progress.bad == 2 && progress.skipped == 7 && progress.line == 9)
        #expect(progress.summary(elapsedSeconds: 1).hasSuffix("lines read: 2, blank: 0, bad: 2; 2 lines/s."))
        let start = Instant(milliseconds: 1_763_640_000_000)
        #expect(progress.skipped(of: "a.ndjson", since: start)?.hasPrefix("7 lines of a.ndjson were skipped: ") == true)
    }

    @Test func `the reason of a bad line is short as it is shown, whatever it quotes`() async throws {
        let odd = String(repeating: #"\u0001\u00e9"#, count: 1_000)
        let line = #"{"app":"a","customer":"c","receipt":"x","expires":"\#(odd)"}"#
        let block = try #require(try await BlockReaderTests.blocks(line, LineLimits()).first)
        let reason = try #require(StoredBlock(reading: block, fromLine: 1, lineBytesMax: 99_999).bad.first?.reason)
        #expect(reason.hasPrefix(#"expires: '\u{1}é"#) && reason.visible == reason && reason.cells <= 500, "\(reason)")
    }

    @Test func `the end says what was skipped, since when it is stored, and how to read it again`() {
        let start = Instant(milliseconds: 1_763_640_000_000)
        #expect(ImportProgress(line: 60).skipped(of: "a.ndjson", since: start) == nil)
        #expect(
            ImportProgress(line: 60, linesBefore: 50).skipped(of: "a.ndjson", since: start)
                == "50 lines of a.ndjson were skipped: imports of this file since 2025-11-20T12:00:00.000Z stored them. "
                + "--again reads the file from the start, with customers who were erased since.")
        let one = ImportProgress(line: 1, linesBefore: 1).skipped(of: "a.ndjson", since: start)
        #expect(one?.hasPrefix("1 line of a.ndjson was skipped: ") == true && one?.contains(" stored it. ") == true)
    }

    @Test(arguments: [
        (0, "0 s"), (59, "59 s"), (60, "1 min"), (61, "2 min"), (3_600, "1 h 0 min"), (12_000, "3 h 20 min"),
        (187_200, "2 days 4 h"),
    ])
    func `times are said in words`(seconds: Int, words: String) {
        #expect(Duration.seconds(seconds).inWords == words)
    }

    @Test func `a thousand bad lines are listed, the rest is counted`() {
        var lines = BadLines()
        let reported = (1...3_000).compactMap { lines.sentence(for: StoredBlock.BadLine(number: $0, reason: "odd")) }
        #expect(reported.count == 1_001)
        #expect(reported.first == "line 1: odd")
        #expect(reported.last == "More than 1000 lines are bad; from line 1001 on they are only counted.")
    }
}

@Suite("An import forecasts how long its checks take") struct CheckForecastTests {
    static func waiting(_ receipts: Int64, _ rate: Double, worker: Bool = true, _ app: BundleID = "a")
        -> WaitingReceipts
    {
        WaitingReceipts(bundleID: app, receipts: receipts, callsPerSecond: rate, hasWorker: worker)
    }

    static let limited =
        "a: 5000000 receipts wait for Apple's first answer; at 50 calls a second all are asked about in about "

    @Test func `an app's limit gives the time`() {
        #expect(CheckForecast().sentences(for: [Self.waiting(5_000_000, 50)]) == [Self.limited + "27 h 46 min."])
        #expect(CheckForecast().sentences(for: [Self.waiting(0, 50)]).isEmpty)
        #expect(
            CheckForecast().sentences(for: [Self.waiting(100, 0.5, worker: false)]) == [
                "a: 100 receipts wait for Apple's first answer; no worker is running; once `perennial worker` does, "
                    + "they are asked about: all in about 4 min."
            ])
    }

    @Test func `without a limit only what was seen counts`() {
        let unlimited = Self.waiting(1_000, 0)
        let unknown =
            "a: 1000 receipts wait for Apple's first answer; the app has no limit of calls, and how fast Apple "
        #expect(CheckForecast().sentences(for: [unlimited]) == [unknown + "answers is not known yet."])
        var forecast = CheckForecast(earlier: ([Self.waiting(1_500, 0)], 10), storedSince: 500)
        #expect(
            forecast.sentences(for: [unlimited]) == [
                "a: 1000 receipts wait for Apple's first answer; at the 100 a second seen during this import all are asked "
                    + "about in about 10 s."
            ])
        // Nothing was answered, or another app's lines are counted too: nothing is known.
        forecast.storedSince = -500
        #expect(forecast.sentences(for: [unlimited]) == [unknown + "answers is not known yet."])
        forecast.storedSince = 500
        #expect(forecast.sentences(for: [unlimited, Self.waiting(7, 0, "b")])[0].hasSuffix("is not known yet."))
    }
}
