import ArgumentParser
import Foundation

/// How the program ends: 0 done, 1 failed with one line on standard error, 2 a verifying command found a difference,
/// 64 usage, 78 configuration.
enum Ending {
    /// The exit status of a bad or missing setting, EX_CONFIG of sysexits(3).
    static let configuration: Int32 = 78

    /// Ends the process for an error, or for ArgumentParser's ways of asking for help.
    static func end(with error: any Error) -> Never {
        if let mistakes = error as? SettingsMistakes {
            for line in mistakes.lines { sayOnStandardError("perennial: \(line)") }
            exit(configuration)
        }
        // ArgumentParser knows its own errors; whatever it has no other status for is a failure of ours.
        guard !(error is ExitCode), Perennial.exitCode(for: error) == .failure else { Perennial.exit(withError: error) }
        sayOnStandardError("perennial: \(sentence(for: error))")
        exit(ExitCode.failure.rawValue)
    }

    /// One line for a person: what failed, where, what to do.
    static func sentence(for error: any Error) -> String {
        let text = (error as? any LocalizedError)?.errorDescription ?? "\(error)"
        return text.split(whereSeparator: \.isNewline).joined(separator: " ")
    }
}

/// A failure with its sentence.
struct Failure: Error, CustomStringConvertible {
    /// What failed, where, what to do.
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
