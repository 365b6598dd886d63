/// A moment in UTC with millisecond precision, as Apple's `*_ms` fields give it.
package struct Instant: Hashable, Comparable, Sendable {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    package let milliseconds: Int64

    /// Creates an instant from milliseconds since 1970-01-01T00:00:00Z.
    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// Returns whether `left` is earlier than `right`.
    package static func < (left: Instant, right: Instant) -> Bool { left.milliseconds < right.milliseconds }

    /// Returns the instant `delay` later; saturates instead of overflowing.
    package static func + (instant: Instant, delay: Delay) -> Instant {
        let (sum, overflow) = instant.milliseconds.addingReportingOverflow(delay.milliseconds)
        guard overflow else { return Instant(milliseconds: sum) }
        return Instant(milliseconds: delay.milliseconds > 0 ? .max : .min)
    }

    /// Returns the instant `delay` earlier; saturates instead of overflowing.
    package static func - (instant: Instant, delay: Delay) -> Instant {
        instant + Delay(milliseconds: -delay.milliseconds)
    }

    /// Returns the time from `right` to `left`; saturates instead of overflowing.
    package static func - (left: Instant, right: Instant) -> Delay {
        let (difference, overflow) = left.milliseconds.subtractingReportingOverflow(right.milliseconds)
        guard overflow else { return Delay(milliseconds: difference) }
        return Delay(milliseconds: left > right ? .max : -.max)
    }
}

/// A length of time in milliseconds.
package struct Delay: Hashable, Comparable, Sendable {
    /// The length in milliseconds; negative if it points to the past.
    package let milliseconds: Int64

    /// Creates a length of time from milliseconds.
    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// A length of zero.
    package static let zero = Delay(milliseconds: 0)
    /// Returns a number of seconds.
    package static func seconds(_ count: Int64) -> Delay { Delay(milliseconds: count * 1000) }
    /// Returns a number of minutes.
    package static func minutes(_ count: Int64) -> Delay { .seconds(count * 60) }
    /// Returns a number of hours.
    package static func hours(_ count: Int64) -> Delay { .minutes(count * 60) }
    /// Returns a number of days of 24 hours.
    package static func days(_ count: Int64) -> Delay { .hours(count * 24) }

    /// Returns whether `left` is shorter than `right`.
    package static func < (left: Delay, right: Delay) -> Bool { left.milliseconds < right.milliseconds }
}

extension Instant {
    /// ISO 8601 in UTC with milliseconds, such as `2026-11-20T12:00:00.000Z`. Years outside 0–9999 are clamped to that
    /// range: Apple gives none, and other readers reject them.
    package var iso8601: String {
        var text: [UInt8] = []
        writeISO8601(to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// Adds the same text in ASCII.
    package func writeISO8601(to text: inout [UInt8]) {
        let earliest: Int64 = -62_167_219_200_000
        let latest: Int64 = 253_402_300_799_999
        let clamped = min(max(milliseconds, earliest), latest)
        let (days, rest) = clamped.flooredDivision(by: 86_400_000)
        let date = CivilDate(daysSince1970: days)
        let start = text.count
        text.append(contentsOf: "0000-00-00T00:00:00.000Z".utf8)
        func put(_ number: Int64, upTo end: Int) {
            var (rest, place) = (number, start + end)
            while rest > 0 {
                place -= 1
                text[place] = UInt8(ascii: "0") + UInt8(rest % 10)
                rest /= 10
            }
        }
        put(date.year, upTo: 4)
        put(date.month, upTo: 7)
        put(date.day, upTo: 10)
        put(rest / 3_600_000, upTo: 13)
        put(rest / 60_000 % 60, upTo: 16)
        put(rest / 1000 % 60, upTo: 19)
        put(rest % 1000, upTo: 23)
    }

    /// Creates an instant from ISO 8601: a date (midnight UTC), or a date and time with `Z`, an offset such as `+0300`
    /// or `-08:00`, or neither (UTC). Fractions beyond milliseconds are cut off. Nil for anything else.
    package init?(iso8601 text: String) {
        var reader = ISO8601Reader(text)
        guard let year = reader.number(4), reader.skip("-"), let month = reader.number(2), reader.skip("-"),
            let day = reader.number(2), let date = CivilDate(year: year, month: month, day: day)
        else { return nil }
        var milliseconds = date.daysSince1970 * 86_400_000
        if !reader.isAtEnd {
            guard reader.skip("T") || reader.skip("t") || reader.skip(" "), let time = reader.time(),
                let offset = reader.offset()
            else { return nil }
            milliseconds += time - offset
        }
        guard reader.isAtEnd else { return nil }
        self.init(milliseconds: milliseconds)
    }

    /// Returns whether a text in ISO 8601 names its offset from UTC, as `Z` or in hours: no other part has these characters.
    package static func namesOffset(_ text: String) -> Bool {
        text.utf8.dropFirst("2026-11-20".utf8.count).contains { "Zz+-".utf8.contains($0) }
    }

    /// Whether the instant lies on the last or the first day of a month in UTC. More renewals fall there, because Apple
    /// moves a renewal to a month's last day where the month lacks its day.
    var isAtTurnOfMonth: Bool {
        let day = milliseconds.flooredDivision(by: 86_400_000).quotient
        return CivilDate(daysSince1970: day).day == 1 || CivilDate(daysSince1970: day + 1).day == 1
    }
}

extension Int64 {
    fileprivate func flooredDivision(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let remainder = (self % divisor + divisor) % divisor
        return ((self - remainder) / divisor, remainder)
    }
}

/// A day of the proleptic Gregorian calendar. Years are counted from March, so that the leap day comes last.
private struct CivilDate {
    let year: Int64
    let month: Int64
    let day: Int64

    init(daysSince1970: Int64) {
        let (era, dayOfEra) = (daysSince1970 + 719_468).flooredDivision(by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * shifted + 2) / 5 + 1
        month = shifted < 10 ? shifted + 3 : shifted - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// Creates the day; nil if it does not exist.
    init?(year: Int64, month: Int64, day: Int64) {
        guard (1...12).contains(month), (1...31).contains(day) else { return nil }
        self.year = year
        self.month = month
        self.day = day
        let same = CivilDate(daysSince1970: daysSince1970)
        guard same.month == month, same.day == day else { return nil }
    }

    var daysSince1970: Int64 {
        let (era, yearOfEra) = (month <= 2 ? year - 1 : year).flooredDivision(by: 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}

/// Reads the parts of a date from left to right.
private struct ISO8601Reader {
    private var rest: Substring.UTF8View

    init(_ text: String) { rest = Substring(text).utf8 }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard let first = rest.first, UInt32(first) == character.value else { return false }
        rest.removeFirst()
        return true
    }

    mutating func number(_ digits: Int) -> Int64? {
        guard rest.count >= digits else { return nil }
        var value: Int64 = 0
        for byte in rest.prefix(digits) {
            guard byte.isDigit else { return nil }
            value = value * 10 + Int64(byte - 48)
        }
        rest.removeFirst(digits)
        return value
    }

    /// Reads a time as milliseconds since midnight.
    mutating func time() -> Int64? {
        guard let hour = number(2), hour < 24, skip(":"), let minute = number(2), minute < 60 else { return nil }
        var milliseconds = (hour * 60 + minute) * 60_000
        guard skip(":") else { return milliseconds }
        guard let second = number(2), second < 60 else { return nil }
        milliseconds += second * 1000
        guard skip(".") || skip(",") else { return milliseconds }
        var weight: Int64 = 1000
        while let digit = number(1) {
            weight /= 10
            milliseconds += digit * weight
        }
        return weight < 1000 ? milliseconds : nil
    }

    /// Reads an offset as milliseconds ahead of UTC.
    mutating func offset() -> Int64? {
        if isAtEnd || skip("Z") || skip("z") { return 0 }
        let isAhead = skip("+")
        guard isAhead || skip("-") else { return nil }
        let sign: Int64 = isAhead ? 1 : -1
        guard let hours = number(2), hours < 24 else { return nil }
        if isAtEnd { return sign * hours * 3_600_000 }
        _ = skip(":")
        guard let minutes = number(2), minutes < 60 else { return nil }
        return sign * (hours * 60 + minutes) * 60_000
    }
}

extension Delay {
    /// Returns a multiple of the delay; saturates instead of overflowing.
    func times(_ factor: Int64) -> Delay {
        let (product, overflow) = milliseconds.multipliedReportingOverflow(by: factor)
        return Delay(milliseconds: overflow ? .max : product)
    }

    static func + (left: Delay, right: Delay) -> Delay {
        Delay(milliseconds: left.milliseconds + right.milliseconds)
    }

    /// Returns a fraction of the delay, rounded down to the millisecond.
    package func divided(by divisor: Int) -> Delay { Delay(milliseconds: milliseconds / Int64(max(1, divisor))) }

    /// The length in minutes, rounded, in words.
    var inMinutes: String {
        let minutes = (milliseconds + 30_000) / 60_000
        return minutes == 1 ? "1 minute" : "\(minutes) minutes"
    }
}
