import Logging
import Tracking

/// How a log line looks.
enum LogFormat: String, CaseIterable, Sendable {
    /// For people: time, level, who, message, details.
    case text
    /// One JSON object: `time`, `level`, `logger`, `message`, and `metadata` where there is any.
    case json

    /// One line, without its end, whatever the message holds.
    func line(time: String, level: Logger.Level, label: String, message: String, metadata: Logger.Metadata) -> String {
        switch self {
        case .text:
            let details = metadata.sorted { $0.key < $1.key }.map { " \($0.key)=\(Self.oneLine("\($0.value)"))" }
            return "\(time) \(level.rawValue) \(label): \(Self.oneLine(message))\(details.joined())"
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

    /// What came from outside must not forge a second line.
    private static func oneLine(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else { return text }
        return text.unicodeScalars.map { scalar in
            scalar.properties.generalCategory == .control ? "\\u{\(String(scalar.value, radix: 16))}" : String(scalar)
        }.joined()
    }
}
