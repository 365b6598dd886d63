import Foundation

/// The destination of the output, as far as it is known.
enum Terminal {
    /// Clears the screen and goes to its first line (ECMA-48), where standard output is a terminal.
    static func clear() {
        if isOutput { write("\u{1B}[H\u{1B}[2J\u{1B}[3J", to: .standardOutput) }
    }

    /// Whether standard output is a terminal.
    static var isOutput: Bool { isatty(STDOUT_FILENO) == 1 }
    /// Whether standard error is a terminal.
    static var isStandardError: Bool { isatty(STDERR_FILENO) == 1 }
}
