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
