import Foundation
import Tracking

/// The progress of a long job on standard error: one line on a terminal, a line now and then elsewhere.
struct ProgressNote {
    private let isTerminal = Terminal.isStandardError
    private var lastShown = ContinuousClock.now

    /// The time between two lines: short on a terminal, long in a log.
    private var interval: Duration { isTerminal ? .milliseconds(200) : .seconds(5) }

    /// Shows the line when it is time for one, or `other` where standard error is not a terminal.
    mutating func show(_ line: @autoclosure () -> String, elsewhere other: @autoclosure () -> String? = nil) {
        guard ContinuousClock.now - lastShown >= interval else { return }
        lastShown = ContinuousClock.now
        if isTerminal {
            write("\r\(line().visible)\u{1B}[K", to: .standardError)
        } else {
            printError(other() ?? line())
        }
    }

    /// Writes a line that stays. The progress line returns when it is shown again.
    func printLine(_ line: String) {
        clear()
        printError(line)
    }

    /// Removes the line.
    func clear() {
        if isTerminal { write("\r\u{1B}[K", to: .standardError) }
    }
}
