import Hummingbird
import Subscriptions

extension Request {
    /// An instant of the query; nil when it is not given.
    func instant(_ name: String) throws -> Instant? {
        try uri.queryParameters.get(name).map { try Instant(asked: $0, as: "The query's \(name)") }
    }

    /// A whole number of the query; nil when it is not given. Numbers above the range are taken for its end.
    func number(_ name: String, from lowest: Int64, upTo highest: Int64) throws -> Int64? {
        guard let text = uri.queryParameters.get(name) else { return nil }
        guard !text.isEmpty, text.utf8.count <= 18,
            text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let number = Int64(text), number >= lowest
        else {
            throw Problem(.invalid, "The query's \(name) is not a whole number from \(lowest) on.")
        }
        return min(number, highest)
    }
}

extension Instant {
    /// PostgreSQL knows every instant between these; no receipt is older or lasts longer.
    private static let earliest = Instant(milliseconds: 0)
    private static let latest = Instant(milliseconds: 253_402_300_799_999)

    /// An instant that a caller gave: ISO 8601 between 1970 and 9999.
    init(asked text: String, as name: String) throws {
        guard let instant = Instant(iso8601: text), Self.earliest <= instant, instant <= Self.latest else {
            throw Problem(.invalid, "\(name) is not an instant between 1970 and 9999, like 2026-11-20T12:00:00Z.")
        }
        self = instant
    }
}
