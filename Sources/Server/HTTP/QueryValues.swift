import Hummingbird
import Subscriptions

extension Request {
    /// Returns an instant of the query, or nil when it is absent. Throws a problem when it is invalid.
    func instant(_ name: String) throws -> Instant? {
        try uri.queryParameters.get(name).map { try Instant(asked: $0, as: "The query's \(name)") }
    }

    /// Returns a whole number of the query, or nil when it is absent. A number above the range becomes `highest`.
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
    /// PostgreSQL can represent every instant between these. No receipt is older or lasts longer.
    private static let earliest = Instant(milliseconds: 0)
    private static let latest = Instant(milliseconds: 253_402_300_799_999)

    /// Reads an instant that a caller gave: ISO 8601, between 1970 and 9999. Throws a problem for anything else.
    init(asked text: String, as name: String) throws {
        guard let instant = Instant(iso8601: text), Self.earliest <= instant, instant <= Self.latest else {
            throw Problem(.invalid, "\(name) is not an instant between 1970 and 9999, like 2026-11-20T12:00:00Z.")
        }
        self = instant
    }
}
