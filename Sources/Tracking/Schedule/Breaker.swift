/// Slows claiming down while Apple, as seen from this worker, answers nobody: a batch every so often.
struct Breaker: Sendable, Hashable {
    /// Batches in a row that mostly failed.
    private(set) var failedBatches = 0

    /// Batches that may fail before the pause begins.
    static let toleratedBatches = 2
    /// The longest pause, in seconds.
    static let pauseSecondsMax = 60.0

    /// Takes in how a batch went: `troubled` answers out of `asked`.
    mutating func record(asked: Int, troubled: Int) {
        guard asked > 0 else { return }
        failedBatches = troubled * 2 > asked ? failedBatches + 1 : 0
    }

    /// Seconds to wait before the next claim; 0 while Apple answers.
    var pauseSeconds: Double {
        let beyond = failedBatches - Self.toleratedBatches
        guard beyond > 0 else { return 0 }
        return min(Self.pauseSecondsMax, Double(1 << min(beyond, 10)))
    }
}
