import Foundation

/// JSON as the server writes it: instants are ISO 8601 in UTC with milliseconds.
enum JSONText {
    /// Reads answers.
    static func decoder() -> JSONDecoder {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            let text = try container.decode(String.self)
            guard let date = date(text) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "\(text) is no instant.")
            }
            return date
        }
        return decoder
    }

    /// Writes bodies and files; equal values give equal bytes.
    static func encode(_ value: some Encodable) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(text(date))
        }
        return try encoder.encode(value)
    }

    /// Writes an instant.
    static func text(_ date: Date) -> String { date.formatted(withMilliseconds) }

    private static let withMilliseconds = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    private static let wholeSeconds = Date.ISO8601FormatStyle(includingFractionalSeconds: false)

    /// Reads an instant; nil for other text.
    static func date(_ text: String) -> Date? {
        (try? withMilliseconds.parse(text)) ?? (try? wholeSeconds.parse(text))
    }
}
