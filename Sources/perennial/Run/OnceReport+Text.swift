import Tracking

extension OnceReport {
    /// The result of a run, for human readers.
    var text: String {
        let rest = left == 0 ? "none is left" : left.of("is left", "are left")
        var lines = ["Asked Apple about \(asked.of("receipt", "receipts")); \(rest)."]
        if unanswered > 0 {
            lines.append("No usable answer about \(unanswered.of("receipt", "receipts")), to be asked about again:")
            lines += unansweredBecause.map { "  \($0)" }
            if unanswered > unansweredBecause.count {
                lines.append("  and \(unanswered - unansweredBecause.count) more")
            }
        }
        return lines.joined(separator: "\n")
    }

    /// The reason why due receipts are left; nil when none are.
    var failure: Failure? {
        guard left > 0 else { return nil }
        let reasons = why.isEmpty ? "see the log" : why.joined(separator: "; ")
        return Failure("Apple was not asked about \(left.of("due receipt", "due receipts")): \(reasons)")
    }
}
