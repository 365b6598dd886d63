import Ledger

/// The progress of an import.
struct ImportProgress: Sendable, Hashable {
    /// Bytes of the file; nil when unknown.
    var bytesTotal: Int?
    /// Bytes of the file up to which everything is stored.
    var bytesDone = 0
    /// Bytes that were done before this run began.
    var bytesBefore = 0
    /// The last line up to which everything is stored.
    var line = 0
    /// Lines that were done before this run began.
    var linesBefore = 0
    /// Receipts stored that were not known before.
    var new = 0
    /// Receipts stored that were known already.
    var known = 0
    /// Lines that could not be stored.
    var bad = 0
    /// Lines that promise access for longer than the limit.
    var cutShort = 0

    /// Receipts stored.
    var stored: Int { new + known }

    /// Adds the result of the next block.
    mutating func add(_ block: StoredBlock) {
        line = block.numbers.upperBound - 1
        bytesDone = block.endOffset
        new += block.new
        known += block.known
        bad += block.bad.count
        cutShort += block.cutShort
    }

    /// Returns a bar for a terminal of 80 columns.
    func bar(elapsedSeconds: Double) -> String {
        guard let share else { return numbers(elapsedSeconds) }
        let full = Int(share * 10)
        let bar = String(repeating: "#", count: full) + String(repeating: ".", count: 10 - full)
        return "[\(bar)] \(Int(share * 100))%  \(numbers(elapsedSeconds))"
    }

    /// Returns a line for a log.
    func note(elapsedSeconds: Double) -> String {
        let percent = share.map { ", \(Int($0 * 100))% of the file" } ?? ""
        return "line \(line)\(percent): \(numbers(elapsedSeconds))"
    }

    /// Returns the result of an import.
    func summary(elapsedSeconds: Double) -> String {
        let before = linesBefore > 0 ? " after line \(linesBefore)" : ""
        return
            "Receipts stored: \(stored) (\(new) new, \(known) known before); lines read\(before): \(line - linesBefore), "
            + "bad: \(bad); \(rate(elapsedSeconds)) lines/s."
    }

    /// The part done, from 0 to 1; nil when unknown.
    private var share: Double? {
        bytesTotal.map { $0 > 0 ? min(1, Double(bytesDone) / Double($0)) : 1 }
    }

    private func rate(_ elapsedSeconds: Double) -> Int {
        elapsedSeconds > 0 ? Int(Double(line - linesBefore) / elapsedSeconds) : 0
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

/// The progress of an import on standard error: a bar on a terminal, a plain line now and then elsewhere.
struct ProgressLine {
    private let start = ContinuousClock.now
    private var line = ProgressNote()

    /// Shows the progress when it is time for it.
    mutating func show(_ progress: ImportProgress) {
        let seconds = elapsedSeconds
        line.show(progress.bar(elapsedSeconds: seconds), elsewhere: progress.note(elapsedSeconds: seconds))
    }

    /// Writes a line that stays; the bar returns with the next progress.
    func printLine(_ text: String) { line.printLine(text) }

    /// Removes the bar.
    func clear() { line.clear() }

    /// The seconds since this value was created.
    var elapsedSeconds: Double {
        let elapsed = (ContinuousClock.now - start).components
        return Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18
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
