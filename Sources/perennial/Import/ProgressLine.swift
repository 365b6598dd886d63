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
