import ArgumentParser
import Foundation

/// The exit status of the program: 0 done, 1 failed with one line on standard error, 2 a verifying command found a
/// difference, 64 usage, 78 configuration.
enum ExitStatus {
    /// The exit status of an invalid or missing setting, EX_CONFIG of sysexits(3).
    static let configuration: Int32 = 78

    /// Ends the process after an error, or after ArgumentParser's requests for help.
    static func end(with error: any Error) -> Never {
        if let mistakes = error as? SettingsMistakes {
            for line in mistakes.lines { printError("perennial: \(line)") }
            exit(configuration)
        }
        // ArgumentParser knows its own errors; an error that it has no other status for is a failure of the program.
        guard !(error is ExitCode), Perennial.exitCode(for: error) == .failure else { Perennial.exit(withError: error) }
        printError("perennial: \(sentence(for: error))")
        exit(ExitCode.failure.rawValue)
    }

    /// Returns one line for the operator: what failed, where, what to do.
    static func sentence(for error: any Error) -> String {
        let text = (error as? any LocalizedError)?.errorDescription ?? "\(error)"
        return text.split(whereSeparator: \.isNewline).joined(separator: " ")
    }
}

/// A failure with a sentence about it.
struct Failure: Error, CustomStringConvertible {
    /// What failed, where, what to do.
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
