import Foundation

/// Shows how far an import is on standard error: a bar on a terminal, a plain line now and then elsewhere.
struct ProgressLine {
    private let isTerminal = Terminal.isStandardError
    private let start = ContinuousClock.now
    private var lastShown = ContinuousClock.now

    /// A terminal is refreshed often, a log seldom.
    private var interval: Duration { isTerminal ? .milliseconds(200) : .seconds(5) }

    /// Shows the progress when it is time for it.
    mutating func show(_ progress: ImportProgress) {
        guard ContinuousClock.now - lastShown >= interval else { return }
        lastShown = ContinuousClock.now
        if isTerminal {
            write("\r\(progress.bar(elapsedSeconds: elapsedSeconds))\u{1B}[K", to: .standardError)
        } else {
            sayOnStandardError(progress.note(elapsedSeconds: elapsedSeconds))
        }
    }

    /// Writes a line that stays; the bar comes back with the next progress.
    func say(_ line: String) {
        sayOnStandardError(isTerminal ? "\r\u{1B}[K\(line)" : line)
    }

    /// Removes the bar.
    func clear() {
        if isTerminal { write("\r\u{1B}[K", to: .standardError) }
    }

    /// Since this was made.
    var elapsedSeconds: Double {
        let elapsed = (ContinuousClock.now - start).components
        return Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18
    }
}
