import ArgumentParser
import Foundation
import JSON
import Logging
import Subscriptions
import Synchronization
import Tracking

/// Writes lines for human readers to standard output immediately, so that a pipe gets them as soon as a terminal would.
func printLine(_ lines: String) {
    write(lines.visibleLines + "\n", to: .standardOutput)
}

/// Writes lines in which foreign text was made visible before, so that their own colours stay.
func printStyled(_ lines: String) {
    write(lines + "\n", to: .standardOutput)
}

/// Writes machine-readable text to standard output, byte by byte; only a terminal gets it in visible form.
func printExactly(_ text: String) {
    if Terminal.isOutput {
        printLine(text.replacing("\r\n", with: "\n"))
    } else {
        write(text + "\n", to: .standardOutput)
    }
}

func printError(_ lines: String) {
    write(lines.visibleLines + "\n", to: .standardError)
}

/// Writes a secret that cannot be shown again. Throws one sentence with the remedy where standard output did not take it.
func printSecret(_ text: String, ifLost remedy: String) throws {
    printLine(text)
    if let lost = LostOutput.first { throw LostOutput(description: "\(lost) \(remedy)") }
}

/// Writes text. `LostOutput` remembers what standard output did not take; a reader that went away, as in
/// `perennial status | head`, is not a failure.
func write(_ text: String, to handle: FileHandle) {
    write(bytes: Array(text.runnableHere.utf8), to: handle.fileDescriptor)
}

private func write(bytes: [UInt8], to descriptor: Int32) {
    var rest = bytes[...]
    while !rest.isEmpty {
        let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
        let reason = errno
        if count > 0 {
            rest = rest.dropFirst(count)
        } else if reason == EAGAIN {
            var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            poll(&room, 1, -1)
        } else if reason != EINTR {
            if descriptor == STDOUT_FILENO { LostOutput.remember(reason) }
            return
        }
    }
}

/// A failed write to standard output. The command goes on, because its work is done or half done, and then ends with
/// status 1.
struct LostOutput: Error, CustomStringConvertible {
    /// The reason of the first one, as `errno` has it; nil while all was written.
    private static let reason = Mutex<Int32?>(nil)

    /// What was not written first; nil while standard output took all.
    static var first: LostOutput? { reason.withLock { $0 }.map(LostOutput.init) }

    /// The failure of this process. A reader that went away is none.
    static var seen: LostOutput? { reason.withLock { $0 == EPIPE ? nil : $0 }.map(LostOutput.init) }

    static func remember(_ number: Int32) {
        reason.withLock { $0 = $0 ?? number }
    }

    let description: String

    init(description: String) {
        self.description = description
    }

    private init(_ reason: Int32) {
        description =
            "Standard output did not take everything: \(String(cString: strerror(reason))). What it has is not whole."
    }
}

/// Opens what is closed of the descriptors 0 to 2, so that no connection becomes standard output. They are opened the
/// wrong way round: reading and writing there fails, as with a closed one. A file that may not grow and a reader that
/// went away are failed writes from then on, and no signals that end the process in the middle of its work.
func openStandardStreams() {
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
        _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
    for number in [SIGXFSZ, SIGPIPE] { signal(number, SIG_IGN) }
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

    static var isOutput: Bool { isatty(STDOUT_FILENO) == 1 }
    static var isStandardError: Bool { isatty(STDERR_FILENO) == 1 }
}

/// Looks again and again, and shows what a look found or why it failed: beside a table on standard output, but JSON and
/// CSV stay whole. SIGINT and SIGTERM end the process at once with status 0, also in the middle of a look: a look only
/// reads, and one that waits for the database may wait long. It returns when standard output takes no more.
func keepLooking<Found>(
    everySeconds seconds: Int, isTable: Bool, _ look: () async throws -> Found, show: (Found) -> Void
) async {
    for number in [SIGINT, SIGTERM] { signal(number) { _ in _exit(EXIT_SUCCESS) } }
    while LostOutput.first == nil {
        do {
            let found = try await look()
            if isTable { Terminal.clear() }
            show(found)
        } catch {
            let sentence = ExitStatus.sentence(for: error)
            if isTable {
                Terminal.clear()
                printLine(sentence)
            } else {
                printError("perennial: \(sentence)")
            }
        }
        if LostOutput.first == nil { await pause(seconds: seconds) }
    }
}

extension String {
    /// The text in a form that a spreadsheet displays: an apostrophe precedes a formula, which a negative number is not.
    /// OWASP, "CSV Injection": a formula begins with one of these characters, or with a tab or a return before it.
    var spreadsheetText: String {
        guard let first = unicodeScalars.first, "=+-@\t\r\n＝＋－＠".unicodeScalars.contains(first),
            wholeMatch(of: /-[0-9]+(\.[0-9]+)?/) == nil
        else { return self }
        return "'" + self
    }
}

/// The exit status: 0 done, 1 failed with one line on standard error, 64 usage (of ArgumentParser), and those below.
enum ExitStatus {
    /// The exit status of an invalid or missing setting, EX_CONFIG of sysexits(3).
    static let configuration: Int32 = 78
    /// The exit status of a verifying command that found a difference.
    static let foundDifference = ExitCode(2)

    /// Ends the process after a command, after an error, or after ArgumentParser's requests for help.
    static func end(with error: any Error) -> Never {
        if let mistakes = error as? SettingsMistakes {
            for line in mistakes.lines { printError("perennial: \(line)") }
            exit(configuration)
        }
        // ArgumentParser knows its own errors; an error that it has no other status for is a failure of the program.
        let status = Perennial.exitCode(for: error)
        if !(error is ExitCode) {
            // ArgumentParser would print its own texts through a buffer, and its loss would go unseen.
            let text = Perennial.fullMessage(for: error)
            switch status {
            case .success: write(bytes: Array((text + "\n").utf8), to: STDOUT_FILENO)
            case .failure: printError("perennial: \(sentence(for: error))")
            // A usage error repeats the words that it was given.
            default: printError(text)
            }
        }
        let lost = LostOutput.seen
        if let lost, !(error is LostOutput) { printError("perennial: \(lost)") }
        exit(lost == nil ? status.rawValue : ExitCode.failure.rawValue)
    }

    /// Returns one line for the operator: what failed, where, what to do.
    static func sentence(for error: any Error) -> String {
        let text = (error as? any LocalizedError)?.errorDescription ?? fileReason(error) ?? "\(error)"
        return text.split(whereSeparator: \.isNewline).joined(separator: " ")
    }

    /// Returns why a file could not be read or written, in the system's words where it said why; nil for an error that is
    /// not Foundation's. On Linux Foundation's errors are no `LocalizedError`, and their description is a dump.
    private static func fileReason(_ error: any Error) -> String? {
        let error = error as NSError
        let cause = (error.userInfo[NSUnderlyingErrorKey] as? any Error).map { $0 as NSError } ?? error
        if cause.domain == NSPOSIXErrorDomain { return String(cString: strerror(Int32(cause.code))) }
        guard error.domain == NSCocoaErrorDomain else { return nil }
        let reason = error.localizedFailureReason ?? error.localizedDescription
        return reason.hasSuffix(".") ? String(reason.dropLast()) : reason
    }
}

struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

extension BundleID: ExpressibleByArgument {
    /// Reads a bundle id from a flag; nil when empty.
    package init?(argument: String) {
        guard !argument.isEmpty else { return nil }
        self.init(argument)
    }
}

extension Instant {
    /// The wall clock, for logs and for answers without a clock of Apple's.
    static var wallClock: Instant {
        Instant(milliseconds: Int64((Date().timeIntervalSince1970 * 1000).rounded(.down)))
    }
}

extension JSONValue {
    static func optional(_ instant: Instant?) -> JSONValue {
        .optional(instant?.iso8601)
    }
}

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

    func clear() {
        if isTerminal { write("\r\u{1B}[K", to: .standardError) }
    }
}

enum LogFormat: String, CaseIterable, Sendable {
    /// For human readers: time, level, logger, message, details.
    case text
    /// One JSON object: `time`, `level`, `logger`, `message`, and `metadata` where there is any.
    case json

    /// Returns one line, without its line end, whatever the message contains.
    func line(time: String, level: Logger.Level, label: String, message: String, metadata: Logger.Metadata) -> String {
        switch self {
        case .text:
            let details = metadata.sorted { $0.key < $1.key }.map { " \($0.key)=\("\($0.value)".visible)" }
            return "\(time) \(level.rawValue) \(label): \(message.visible)\(details.joined())"
        case .json:
            var object: [String: JSONValue] = [
                "time": .string(time), "level": .string(level.rawValue), "logger": .string(label),
                "message": .string(message),
            ]
            if !metadata.isEmpty { object["metadata"] = .object(metadata.mapValues(Self.value)) }
            return JSONValue.object(object).rendered()
        }
    }

    private static func value(_ value: Logger.MetadataValue) -> JSONValue {
        switch value {
        case .string(let text): .string(text)
        case .stringConvertible(let convertible): .string("\(convertible)")
        case .dictionary(let values): .object(values.mapValues(Self.value))
        case .array(let values): .array(values.map(Self.value))
        }
    }
}

/// A log handler that writes each line to standard error in one piece, so that lines of several threads never mix.
struct LineLogHandler: LogHandler {
    let label: String
    var logLevel: Logger.Level
    let format: LogFormat
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var details = metadata
        if let provided = metadataProvider?.get() { details.merge(provided) { _, newer in newer } }
        if let given = event.metadata { details.merge(given) { _, newer in newer } }
        if let error = event.error { details["error"] = "\(error)" }
        let line = format.line(
            time: Instant.wallClock.iso8601, level: event.level, label: label, message: "\(event.message)",
            metadata: details)
        write(line + "\n", to: .standardError)
    }
}

/// Makes `LineLogHandler` the log of the whole process; called once, by the command that runs.
func startLogging(level: Logger.Level, format: LogFormat) {
    LoggingSystem.bootstrap { LineLogHandler(label: $0, logLevel: level, format: format) }
}

extension Settings {
    var logger: Logger {
        var logger = Logger(label: "perennial")
        logger.logLevel = logLevel
        return logger
    }
}
