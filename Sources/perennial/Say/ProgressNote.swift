/// Shows how far long work is on standard error: one line on a terminal, a line now and then elsewhere.
struct ProgressNote {
    private let isTerminal = Terminal.isStandardError
    private var lastShown = ContinuousClock.now

    /// A terminal is refreshed often, a log seldom.
    private var interval: Duration { isTerminal ? .milliseconds(200) : .seconds(5) }

    /// Shows the line when it is time for one, or another one where standard error is no terminal.
    mutating func show(_ line: @autoclosure () -> String, elsewhere other: @autoclosure () -> String? = nil) {
        guard ContinuousClock.now - lastShown >= interval else { return }
        lastShown = ContinuousClock.now
        if isTerminal {
            write("\r\(line().visible)\u{1B}[K", to: .standardError)
        } else {
            sayOnStandardError(other() ?? line())
        }
    }

    /// Writes a line that stays; the other one comes back when it is shown again.
    func say(_ line: String) {
        clear()
        sayOnStandardError(line)
    }

    /// Removes the line.
    func clear() {
        if isTerminal { write("\r\u{1B}[K", to: .standardError) }
    }
}
