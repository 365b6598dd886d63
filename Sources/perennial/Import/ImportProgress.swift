/// How far an import is.
struct ImportProgress: Sendable, Hashable {
    /// Bytes of the file; nil when they cannot be known.
    var bytesTotal: Int?
    /// Bytes read.
    var bytesDone = 0
    /// The last line read.
    var line = 0
    /// Receipts stored that were not known before.
    var new = 0
    /// Receipts stored that were known already.
    var known = 0
    /// Lines that could not be stored.
    var bad = 0

    /// Receipts stored.
    var stored: Int { new + known }

    /// A bar for a terminal of 80 columns.
    func bar(elapsedSeconds: Double) -> String {
        guard let share else { return numbers(elapsedSeconds) }
        let full = Int(share * 20)
        let bar = String(repeating: "#", count: full) + String(repeating: ".", count: 20 - full)
        return "[\(bar)] \(Int(share * 100))%  \(numbers(elapsedSeconds))"
    }

    /// A line for a log.
    func note(elapsedSeconds: Double) -> String {
        let percent = share.map { ", \(Int($0 * 100))% of the file" } ?? ""
        return "line \(line)\(percent): \(numbers(elapsedSeconds))"
    }

    /// What an import came to.
    var summary: String {
        "Receipts stored: \(stored) (\(new) new, \(known) known before); lines read: \(line), bad: \(bad)."
    }

    /// The part done, from 0 to 1; nil when it cannot be known.
    private var share: Double? {
        bytesTotal.map { $0 > 0 ? min(1, Double(bytesDone) / Double($0)) : 1 }
    }

    private func numbers(_ elapsedSeconds: Double) -> String {
        let rate = elapsedSeconds > 0 ? Int(Double(stored) / elapsedSeconds) : 0
        return "\(stored) receipts, \(rate)/s, \(bad) bad"
    }
}
