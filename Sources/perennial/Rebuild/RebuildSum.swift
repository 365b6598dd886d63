import Ledger

/// The result of a rebuild so far.
struct RebuildSum {
    /// Subscriptions and purchases to examine.
    let total: Int
    private(set) var examined = 0
    private(set) var corrected = 0
    private(set) var differences = 0
    private(set) var gaps = 0

    init(total: Int) {
        self.total = total
    }

    mutating func add(_ batch: RebuildBatch) {
        examined += batch.examined
        corrected += batch.corrected
        differences += batch.differences.count
        gaps += batch.gaps.count
    }

    /// The progress.
    var note: String { "\(examined) of \(total), \(differences.of("difference", "differences"))" }

    /// Returns the result in one line.
    func sentence(verifying: Bool) -> String {
        let looked = "Subscriptions and purchases looked at: \(examined)"
        let found =
            differences == 0 ? "they are what the observations printLine" : "facts that differed: \(differences)"
        let done = verifying || differences == 0 ? "" : "; corrected: \(corrected)"
        let left = gaps == 0 ? "" : "; left as they are, because they cannot be rebuilt in full: \(gaps)"
        return "\(looked); \(found)\(done)\(left)."
    }
}
