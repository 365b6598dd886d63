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
