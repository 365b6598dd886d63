import Foundation
import Logging
import Subscriptions

/// A log handler that writes each line to standard error in one piece, so that lines of several threads never mix.
struct LineLogHandler: LogHandler {
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    let label: String
    let format: LogFormat

    init(label: String, level: Logger.Level, format: LogFormat) {
        self.label = label
        self.logLevel = level
        self.format = format
    }

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
    LoggingSystem.bootstrap { LineLogHandler(label: $0, level: level, format: format) }
}

extension Settings {
    /// A log of this process.
    var logger: Logger {
        var logger = Logger(label: "perennial")
        logger.logLevel = logLevel
        return logger
    }
}
