import Foundation
import Tracking

/// Writes lines for people to standard output at once, so that a pipe sees them when a person would.
func say(_ lines: String) {
    write(lines.visibleLines + "\n", to: .standardOutput)
}

/// Writes what programs read to standard output, byte by byte; only a terminal gets it as a person may see it.
func sayExactly(_ text: String) {
    if Terminal.isOutput { say(text.replacing("\r\n", with: "\n")) } else { write(text + "\n", to: .standardOutput) }
}

/// Writes lines for people to standard error.
func sayOnStandardError(_ lines: String) {
    write(lines.visibleLines + "\n", to: .standardError)
}

/// A reader that went away, as in `perennial status | head`, is no failure of ours.
func write(_ text: String, to handle: FileHandle) {
    try? handle.write(contentsOf: Data(text.utf8))
}
