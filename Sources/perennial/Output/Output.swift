import Foundation
import Tracking

/// Writes lines for human readers to standard output immediately, so that a pipe gets them as soon as a terminal would.
func printLine(_ lines: String) {
    write(lines.visibleLines + "\n", to: .standardOutput)
}

/// Writes machine-readable text to standard output, byte by byte; only a terminal gets it in visible form.
func printExactly(_ text: String) {
    if Terminal.isOutput {
        printLine(text.replacing("\r\n", with: "\n"))
    } else {
        write(text + "\n", to: .standardOutput)
    }
}

/// Writes lines for human readers to standard error.
func printError(_ lines: String) {
    write(lines.visibleLines + "\n", to: .standardError)
}

/// Writes text; a reader that went away, as in `perennial status | head`, is not a failure.
func write(_ text: String, to handle: FileHandle) {
    try? handle.write(contentsOf: Data(text.utf8))
}

/// The destination of the output, as far as it is known.
enum Terminal {
    /// Clears the screen and goes to its first line (ECMA-48), where standard output is a terminal.
    static func clear() {
        if isOutput { write("\u{1B}[H\u{1B}[2J\u{1B}[3J", to: .standardOutput) }
    }

    /// How tables are shown on standard output; nil where that is no terminal, which gets them whole.
    static var style: TerminalStyle? {
        guard isOutput else { return nil }
        let environment = ProcessInfo.processInfo.environment
        // https://no-color.org: any text that is not empty.
        let isPlain = environment["NO_COLOR"]?.isEmpty == false || environment["TERM"] == "dumb"
        return TerminalStyle(width: width, hasColour: !isPlain)
    }

    /// The width where a terminal does not know its own.
    private static let usualWidth = 80

    private static var width: Int {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return usualWidth }
        return Int(size.ws_col)
    }

    /// Whether standard output is a terminal.
    static var isOutput: Bool { isatty(STDOUT_FILENO) == 1 }
    /// Whether standard error is a terminal.
    static var isStandardError: Bool { isatty(STDERR_FILENO) == 1 }
}

extension String {
    /// The text in a form that a spreadsheet displays: an apostrophe precedes a formula. A negative number is not a
    /// formula.
    ///
    /// OWASP, "CSV Injection": a formula begins with one of these characters, or with a tab or a return before it.
    var spreadsheetText: String {
        guard let first = unicodeScalars.first, "=+-@\t\r\n＝＋－＠".unicodeScalars.contains(first),
            wholeMatch(of: /-[0-9]+(\.[0-9]+)?/) == nil
        else { return self }
        return "'" + self
    }
}
