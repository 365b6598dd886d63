import Foundation

/// Writes a line to standard output at once, so that a pipe sees it when a person would.
func say(_ line: String) {
    write(line + "\n", to: .standardOutput)
}

/// Writes a line to standard error.
func sayOnStandardError(_ line: String) {
    write(line + "\n", to: .standardError)
}

/// A reader that went away, as in `perennial status | head`, is no failure of ours.
func write(_ text: String, to handle: FileHandle) {
    try? handle.write(contentsOf: Data(text.utf8))
}
