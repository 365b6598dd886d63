import Foundation

/// A number, or an instant, of a query that is beyond its limits.
struct OutOfRange: Error, CustomStringConvertible {
    let description: String
}

/// The values in the queries of control calls.
extension [URLQueryItem] {
    /// Returns a number of the query; throws for a text that is no number of the range.
    func number(_ name: String, in range: ClosedRange<Int>) throws(OutOfRange) -> Int? {
        guard let text = first(where: { $0.name == name })?.value else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw OutOfRange(description: "\(name) is \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// Returns an instant of the query; throws for a text that is none.
    func instant(_ name: String) throws(OutOfRange) -> Int64? {
        guard let text = first(where: { $0.name == name })?.value else { return nil }
        guard let moment = StoreTime(named: text) else {
            throw OutOfRange(description: "\(name) is \(StoreTime.rule)")
        }
        return moment.milliseconds
    }
}

/// The numbers in the bodies of control calls, each with its limits.
extension KeyedDecodingContainer {
    /// Reads a number, if there is one; throws for one beyond the range.
    func numberIfPresent<Value: Decodable & Comparable & Numeric>(
        _ key: Key, in range: ClosedRange<Int>
    ) throws -> Value? {
        guard contains(key), try decodeNil(forKey: key) == false else { return nil }
        return try number(key, in: range)
    }

    /// Reads a number; throws for one beyond the range.
    func number<Value: Decodable & Comparable & Numeric>(_ key: Key, in range: ClosedRange<Int>) throws -> Value {
        let number = try decode(Value.self, forKey: key)
        guard let low = Value(exactly: range.lowerBound), let high = Value(exactly: range.upperBound),
            (low...high).contains(number)
        else {
            throw DecodingError.dataCorruptedError(
                forKey: key, in: self, debugDescription: "a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}

extension Simulator {
    /// The most customers that one answer lists.
    static let listedMax = 1_000_000
    /// How far ahead a truth may be asked for, in months.
    static let monthsAheadMax = 1200

    /// Returns the part of the customers that a query asks for; throws where that is more than one answer lists.
    func part(_ query: [URLQueryItem], at moment: StoreTime) throws(OutOfRange) -> (from: Int, count: Int) {
        let from = try query.number("from", in: 0...Population.arrivalsMax) ?? 0
        if let count = try query.number("count", in: 0...Self.listedMax) { return (from, count) }
        guard world.customerCount(at: moment) - from <= Self.listedMax else {
            throw OutOfRange(description: "these are more than \(Self.listedMax) customers: count is missing")
        }
        return (from, Self.listedMax)
    }

    /// Returns the instant of a truth that a query asks for, if it names one.
    func truthInstant(_ query: [URLQueryItem]) throws(OutOfRange) -> Int64? {
        guard let wanted = try query.instant("at") else { return nil }
        let ahead = world.population.scale.milliseconds(months: Double(Self.monthsAheadMax))
        guard wanted <= now.milliseconds + ahead else {
            throw OutOfRange(description: "at is at most \(Self.monthsAheadMax) months ahead")
        }
        return wanted
    }
}
