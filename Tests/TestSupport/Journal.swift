package import Logging
import Synchronization

/// Keeps every line with its metadata.
package final class Journal: Sendable {
    private let kept = Mutex<[String]>([])

    /// Creates an empty journal.
    package init() {}

    /// The lines so far.
    package var lines: [String] { kept.withLock { $0 } }

    /// A logger that writes here, at every level.
    package var logger: Logger {
        var logger = Logger(label: "test") { _ in Handler(journal: self) }
        logger.logLevel = .trace
        return logger
    }

    private struct Handler: LogHandler {
        let journal: Journal
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let fields = metadata.merging(event.metadata ?? [:]) { _, new in new }
            journal.kept.withLock { $0.append("\(event.level) \(event.message) \(fields)") }
        }
    }
}
