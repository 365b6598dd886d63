import Foundation
import Subscriptions
import Tracking

struct ImportProgress: Sendable, Hashable {
    var bytesTotal: Int?
    /// Bytes of the file up to which everything is stored.
    var bytesDone = 0
    /// Bytes that were done before this run began.
    var bytesBefore = 0
    /// The last line up to which everything is stored.
    var line = 0
    /// Lines that were done before this run began, or are before `--from-line`.
    var linesBefore = 0
    /// Lines after those that earlier runs stored.
    var skipped = 0
    /// Receipts stored that were not known before.
    var new = 0
    /// Receipts stored that were known already.
    var known = 0
    var bad = 0
    var blank = 0
    /// Lines that promise access for longer than the limit.
    var cutShort = 0

    var stored: Int { new + known }

    mutating func add(_ block: StoredBlock) {
        line = max(line, block.numbers.upperBound - 1)
        bytesDone = block.offsets.upperBound
        new += block.new
        known += block.known
        bad += block.bad.count
        blank += block.blank
        skipped += block.skipped
        cutShort += block.cutShort
    }

    /// Returns a bar for a terminal of 80 columns.
    func bar(elapsedSeconds: Double) -> String {
        guard let share else { return numbers(elapsedSeconds) }
        let full = Int(share * 10)
        let bar = String(repeating: "#", count: full) + String(repeating: ".", count: 10 - full)
        return "[\(bar)] \(Int(share * 100))%  \(numbers(elapsedSeconds))"
    }

    func note(elapsedSeconds: Double) -> String {
        let percent = share.map { ", \(Int($0 * 100))% of the file" } ?? ""
        return "line \(line)\(percent): \(numbers(elapsedSeconds))"
    }

    /// Stored, blank and bad lines add up to the lines read. All lines count, as for `--from-line`.
    func summary(elapsedSeconds: Double) -> String {
        let before = linesBefore > 0 ? " after line \(linesBefore)" : ""
        return
            "Receipts stored: \(stored) (\(new) new, \(known) known before); lines read\(before): \(read), "
            + "blank: \(blank), bad: \(bad); \(rate(elapsedSeconds)) lines/s."
    }

    /// Returns a sentence about the lines of the file `name` that imports of it since `start` stored, and this run did not
    /// read; nil without any. An erasure leaves them skipped, so that no import brings a customer back unasked.
    func skipped(of name: String, since start: Instant) -> String? {
        let lines = linesBefore + skipped
        guard lines > 0 else { return nil }
        return
            "\(lines.of("line", "lines")) of \(name) \(lines == 1 ? "was" : "were") skipped: imports of this file "
            + "since \(start.iso8601) stored \(lines == 1 ? "it" : "them"). --again reads the file from the start, with "
            + "customers who were erased since."
    }

    private var read: Int { line - linesBefore - skipped }

    private var share: Double? {
        bytesTotal.map { $0 > 0 ? min(1, Double(bytesDone) / Double($0)) : 1 }
    }

    private func rate(_ elapsedSeconds: Double) -> Int {
        elapsedSeconds > 0 ? Int(Double(read) / elapsedSeconds) : 0
    }

    private func numbers(_ elapsedSeconds: Double) -> String {
        let left = secondsLeft(elapsedSeconds).map { ", \(Duration.seconds($0).inWords) left" } ?? ""
        return "\(new) new, \(known) known, \(bad) bad, \(rate(elapsedSeconds))/s\(left)"
    }

    /// Returns the time left at the speed so far; nil before the speed is known.
    private func secondsLeft(_ elapsedSeconds: Double) -> Double? {
        guard let bytesTotal, bytesDone > bytesBefore, elapsedSeconds > 0 else { return nil }
        return Double(max(0, bytesTotal - bytesDone)) * elapsedSeconds / Double(bytesDone - bytesBefore)
    }
}

extension Duration {
    /// One number and its unit, or two for hours and days: `40 s`, `12 min`, `3 h 20 min`, `2 days 4 h`.
    var inWords: String {
        let seconds = max(0, components.seconds)
        switch seconds {
        case ..<60: return "\(seconds) s"
        case ..<3_600: return "\((seconds + 59) / 60) min"
        case ..<172_800: return "\(seconds / 3_600) h \(seconds % 3_600 / 60) min"
        default: return "\(seconds / 86_400) days \(seconds % 86_400 / 3_600) h"
        }
    }
}

/// The bad lines of an import. The first are reported one by one and the rest only counted, so that a file of nothing
/// else does not fill a disk with sentences.
struct BadLines {
    /// The most bad lines that are reported.
    static let reportedMax = 1_000

    private var count = 0

    /// Returns the sentence about the next one; nil when enough were reported.
    mutating func sentence(for line: StoredBlock.BadLine) -> String? {
        count += 1
        switch count {
        case ...Self.reportedMax: return "line \(line.number): \(line.reason)"
        case Self.reportedMax + 1:
            return "More than \(Self.reportedMax) lines are bad; from line \(line.number) on they are only counted."
        default: return nil
        }
    }
}

/// One block of lines, read and then stored, counted as in `ImportProgress`.
struct StoredBlock: Sendable {
    struct BadLine: Sendable, Hashable {
        let number: Int
        let reason: String
    }

    let numbers: Range<Int>
    /// Its start and end in the file, in bytes.
    let offsets: Range<Int>
    /// What was read and is still to be stored, with the number of its line.
    private(set) var waiting: [(number: Int, submission: Submission)] = []
    private(set) var new = 0
    private(set) var known = 0
    /// Lines that promise access for longer than the limit, by the clock of this machine.
    private(set) var cutShort = 0
    private(set) var bad: [BadLine] = []
    private(set) var blank = 0
    private(set) var skipped = 0

    /// Reads the lines from `fromLine` on that are not in `done`, numbered from 1 with the blank ones. This is pure work, on
    /// as many blocks at a time as there are cores.
    init(reading block: LineBlock, fromLine: Int, without done: [Range<Int64>] = [], lineBytesMax: Int) {
        (numbers, offsets) = (block.numbers, block.offsets)
        let done = done.map { Int($0.lowerBound)..<Int($0.upperBound) }.filter { $0.overlaps(block.numbers) }
        let longest = Instant.wallClock + .days(Provisional.daysMax)
        block.bytes.withUnsafeBytes { bytes in
            for (number, line) in zip(block.numbers, block.lines) where number >= fromLine {
                guard !done.contains(where: { $0.contains(number) }) else {
                    skipped += 1
                    continue
                }
                switch line {
                case .tooLong: note(number, "the line has more than \(lineBytesMax) bytes")
                case .bytes(let range):
                    let line = UnsafeRawBufferPointer(rebasing: bytes[range])
                    guard line.contains(where: { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }) else {
                        blank += 1
                        continue
                    }
                    do {
                        let submission = try ImportLine.submission(in: line)
                        if let until = submission.provisional?.until, until > longest { cutShort += 1 }
                        waiting.append((number, submission))
                    } catch {
                        note(number, ExitStatus.sentence(for: error))
                    }
                }
            }
        }
    }

    /// Counts the results of storing what waited. Bad lines are in the order of the file then.
    mutating func count(_ results: [Result<StoredUpload, any Error>]) {
        for (line, result) in zip(waiting, results) {
            switch result {
            case .success(let upload):
                if upload.isNew { new += 1 } else { known += 1 }
            case .failure(let error): note(line.number, ExitStatus.sentence(for: error))
            }
        }
        waiting = []
        bad.sort { $0.number < $1.number }
    }

    /// Notes a bad line; a reason that quotes the line quotes no more than a few lines of a terminal.
    private mutating func note(_ number: Int, _ reason: String) {
        bad.append(BadLine(number: number, reason: reason.visible.shortened(to: 500)))
    }
}

extension InputFile {
    /// The number of bytes at each end of a file that distinguish it from others.
    private static let edgeBytes = 1 << 20

    /// Returns the file's identity; nil for standard input, pipes and devices. Leaves the handle at the file's start.
    func identity(_ handle: FileHandle) throws -> ImportedFile? {
        guard let byteCount else { return nil }
        let first = try handle.read(atMost: Self.edgeBytes, of: name)
        try handle.seek(toOffset: UInt64(max(0, byteCount - Self.edgeBytes)))
        let last = try handle.read(atMost: Self.edgeBytes, of: name)
        try handle.seek(toOffset: 0)
        return ImportedFile(
            name: URL(fileURLWithPath: path).lastPathComponent, byteCount: Int64(byteCount), firstBytes: Array(first),
            lastBytes: Array(last))
    }
}
