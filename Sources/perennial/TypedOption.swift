import ArgumentParser
import Subscriptions

/// A number that an option takes.
protocol OptionNumber: Comparable, LosslessStringConvertible, ExpressibleByIntegerLiteral, Sendable {
    static var kind: String { get }
    /// The greatest number, which is no limit that a person has to know.
    static var greatest: Self? { get }
}

extension OptionNumber where Self: FixedWidthInteger {
    static var kind: String { "a whole number" }
    static var greatest: Self? { .max }
}

extension Int: OptionNumber {}
extension Int64: OptionNumber {}
extension UInt64: OptionNumber {}
extension Double: OptionNumber {
    static let kind = "a number"
    static let greatest: Double? = nil
}

/// The numbers that an option takes. The number of every option is read here, so that its limits stand in the help and in
/// the message about another one, also about a negative one.
private struct AllowedNumbers<Number: OptionNumber>: Sendable {
    let range: ClosedRange<Number>
    /// Whether 0 is allowed too.
    var orZero = false

    func read(_ text: String) throws -> Number {
        guard let number = Number(text), range.contains(number) || (orZero && number == 0) else {
            throw Failure("give \(Number.kind) \(limits).")
        }
        return number
    }

    func described(_ help: ArgumentHelp, usual: Number? = nil) -> ArgumentHelp {
        var help = help
        help.abstract += " (\(limits)\(usual.map { "; default: \(shown($0))" } ?? ""))"
        return help
    }

    private var limits: String {
        let end = range.upperBound == Number.greatest ? "on" : "to \(shown(range.upperBound))"
        return "from \(shown(range.lowerBound)) \(end)\(orZero ? ", or 0" : "")"
    }

    private func shown(_ number: Number) -> String {
        let text = "\(number)"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}

extension Option {
    /// An option that may be left out, with a number of this range.
    init<Number: OptionNumber>(_ range: ClosedRange<Number>, orZero: Bool = false, help: ArgumentHelp)
    where Value == Number? {
        let allowed = AllowedNumbers(range: range, orZero: orZero)
        self.init(parsing: .unconditional, help: allowed.described(help)) { try allowed.read($0) }
    }

    /// An option that must be given, with a number of this range.
    init(_ range: ClosedRange<Value>, help: ArgumentHelp) where Value: OptionNumber {
        let allowed = AllowedNumbers(range: range)
        self.init(parsing: .unconditional, help: allowed.described(help)) { try allowed.read($0) }
    }

    /// An option with a number of this range, and with one that counts unless it is given.
    init(wrappedValue: Value, _ range: ClosedRange<Value>, help: ArgumentHelp) where Value: OptionNumber {
        let allowed = AllowedNumbers(range: range)
        self.init(
            wrappedValue: wrappedValue, parsing: .unconditional, help: allowed.described(help, usual: wrappedValue)
        ) { try allowed.read($0) }
    }

    /// An option that may be left out, with an instant.
    init(instant help: ArgumentHelp) where Value == Instant? {
        self.init(parsing: .unconditional, help: help) { text in
            guard let instant = Instant(iso8601: text) else { throw Failure("give \(Instant.form).") }
            return instant
        }
    }
}

extension Instant {
    /// What a person has to write for one.
    static let form = "a date or an instant, such as 2026-01-31 or 2026-01-31T12:00Z"
}
