import Foundation

/// What we know about where our lines go.
enum Terminal {
    /// Clears the screen and goes to its first line (ECMA-48), where a person reads standard output directly.
    static func clear() {
        if isOutput { write("\u{1B}[H\u{1B}[2J\u{1B}[3J", to: .standardOutput) }
    }

    /// Whether a person reads standard output directly.
    static var isOutput: Bool { isatty(STDOUT_FILENO) == 1 }
    /// Whether a person reads standard error directly.
    static var isStandardError: Bool { isatty(STDERR_FILENO) == 1 }
}
