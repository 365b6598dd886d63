import Foundation
import Ledger
import Subscriptions
import Tracking

/// The result of one block of lines.
struct StoredBlock: Sendable {
    /// A line that could not be stored.
    struct BadLine: Sendable, Hashable {
        let number: Int
        let reason: String
    }

    /// The numbers of its lines.
    let numbers: Range<Int>
    /// Bytes of the file up to its end.
    let endOffset: Int
    /// Receipts stored that were not known before.
    private(set) var new = 0
    /// Receipts stored that were known already.
    private(set) var known = 0
    /// Lines that promise access for longer than the limit.
    private(set) var cutShort = 0
    /// Lines that could not be stored, in the order of the file.
    private(set) var bad: [BadLine] = []

    /// Combines the results of the stored lines with the lines that could not be parsed.
    init(
        _ block: LineBlock, _ understood: ParsedBlock, _ stored: [Result<StoredUpload, any Error>]
    ) {
        numbers = block.numbers
        endOffset = block.offsets.upperBound
        cutShort = understood.cutShort
        bad = understood.bad
        for (number, result) in zip(understood.numbers, stored) {
            switch result {
            case .success(let upload):
                if upload.isNew { new += 1 } else { known += 1 }
            case .failure(let error): bad.append(BadLine(number: number, reason: ExitStatus.sentence(for: error)))
            }
        }
        bad.sort { $0.number < $1.number }
    }
}

/// A block whose lines were parsed: pure work, on as many blocks at a time as there are cores.
struct ParsedBlock: Sendable {
    /// The submissions to store.
    private(set) var submissions: [Submission] = []
    /// The line of each submission.
    private(set) var numbers: [Int] = []
    /// Lines that cannot be parsed.
    private(set) var bad: [StoredBlock.BadLine] = []
    /// Lines that promise access for longer than the limit, by the clock of this machine.
    private(set) var cutShort = 0

    /// Reads the lines from `fromLine` on; skips blank ones.
    init(_ block: LineBlock, fromLine: Int, lineBytesMax: Int) {
        let longest = Instant.wallClock + .days(Provisional.daysMax)
        block.bytes.withUnsafeBytes { bytes in
            for (number, line) in zip(block.numbers, block.lines) where number >= fromLine {
                switch line {
                case .tooLong: note(number, "the line has more than \(lineBytesMax) bytes")
                case .bytes(let range):
                    let line = UnsafeRawBufferPointer(rebasing: bytes[range])
                    guard line.contains(where: { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }) else {
                        continue
                    }
                    do {
                        let submission = try ImportLine.submission(in: line)
                        if let until = submission.provisional?.until, until > longest { cutShort += 1 }
                        submissions.append(submission)
                        numbers.append(number)
                    } catch {
                        note(number, ExitStatus.sentence(for: error))
                    }
                }
            }
        }
    }

    private mutating func note(_ number: Int, _ reason: String) {
        bad.append(StoredBlock.BadLine(number: number, reason: reason))
    }
}
