import Logging
import Server
import Tracking

/// The format of a log line.
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
