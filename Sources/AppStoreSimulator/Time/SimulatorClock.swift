import Foundation

/// An instant in milliseconds since 1970, the only kind of time inside the simulator.
struct StoreTime: Hashable, Comparable, Sendable {
    let milliseconds: Int64

    /// The start of this instant's second: Apple's purchase and expiry dates are whole seconds.
    var wholeSecond: StoreTime {
        let remainder = milliseconds % 1000
        return StoreTime(milliseconds: milliseconds - (remainder < 0 ? remainder + 1000 : remainder))
    }

    static func < (left: StoreTime, right: StoreTime) -> Bool { left.milliseconds < right.milliseconds }

    static func + (moment: StoreTime, milliseconds: Int64) -> StoreTime {
        StoreTime(milliseconds: moment.milliseconds + milliseconds)
    }

    static func - (moment: StoreTime, milliseconds: Int64) -> StoreTime {
        StoreTime(milliseconds: moment.milliseconds - milliseconds)
    }
}

/// The instants that callers name in control calls and options.
extension StoreTime {
    /// What such a text has to be, for refusals.
    static let rule = "an instant from 1970 to 9999, as milliseconds since 1970 or RFC 3339 text"
    /// The instants that requests and options may name, in milliseconds since 1970.
    static let nameable: ClosedRange<Int64> = 0...253_402_300_799_999

    /// Reads milliseconds since 1970, or RFC 3339 text, whose year has four digits.
    init?(named text: String) {
        let read: Int64? =
            Int64(text)
            ?? (text.utf8.dropFirst(4).first == UInt8(ascii: "-")
                ? (try? Date(text, strategy: .iso8601)).map { Int64($0.timeIntervalSince1970 * 1000) } : nil)
        guard let read, Self.nameable.contains(read) else { return nil }
        milliseconds = read
    }
}

/// The simulator's source of time. Tests pass a clock that they control.
package struct SimulatorClock: Sendable {
    /// Returns the present instant in milliseconds since 1970.
    package let milliseconds: @Sendable () -> Int64

    /// The machine's clock.
    package static let system = SimulatorClock { Int64((Date().timeIntervalSince1970 * 1000).rounded(.down)) }

    var now: StoreTime { StoreTime(milliseconds: milliseconds()) }
}

/// The length of Apple's months in the simulator. Every other length derives from it.
struct TimeScale: Sendable {
    let monthMilliseconds: Double

    init(monthSeconds: Double) { monthMilliseconds = max(monthSeconds, 0.001) * 1000 }

    /// Returns the length of a period in whole seconds, at least one: Apple's dates carry no milliseconds.
    func length(of product: SubscriptionProduct) -> Int64 { wholeSeconds(months: product.months) }

    /// Returns the length with an offer: a week for a free trial, two periods but at most a year if paid up front.
    func length(of product: SubscriptionProduct, with offer: PeriodOffer?) -> Int64 {
        switch offer {
        case .freeTrial: wholeSeconds(months: 0.25)
        case .payUpFront: wholeSeconds(months: min(12, product.months * 2))
        case .payAsYouGo, .promotional, .offerCode, nil: length(of: product)
        }
    }

    /// Returns the grace period: sixteen days of thirty, or six for weekly products, as Apple caps them.
    func grace(for product: SubscriptionProduct) -> Int64 {
        wholeSeconds(months: (product == .weekly ? 6.0 : 16.0) / 30)
    }

    /// The time for which Apple retries a failed charge, about sixty days.
    var retry: Int64 { wholeSeconds(months: 2) }

    /// The length of what one payment of a term pays.
    var payment: Int64 { length(of: .monthly) }

    /// The time for which Apple retries a failed payment of a term, about ninety days.
    var paymentRetry: Int64 { wholeSeconds(months: 3) }

    /// The longest time between an early charge and the expiry: a day of thirty.
    var earlyMax: Int64 { Int64(monthMilliseconds / 30) }

    /// The longest time between the expiry and a late booking.
    var lateMax: Int64 { Int64(monthMilliseconds / 100) }

    /// Returns the length of so many months, to the millisecond.
    func milliseconds(months: Double) -> Int64 { Int64(monthMilliseconds * months) }

    private func wholeSeconds(months: Double) -> Int64 {
        max(1, Int64((monthMilliseconds * months / 1000).rounded())) * 1000
    }
}

/// Apple's text forms of an instant. They need no formatter: they are on the hot path and their form is fixed.
enum AppleDates {
    /// Appends text like "2025-01-10 09:00:05 Etc/GMT".
    static func appendGreenwich(_ moment: StoreTime, to bytes: inout [UInt8]) {
        append(moment, offsetSeconds: 0, separator: UInt8(ascii: " "), to: &bytes)
        append(" Etc/GMT", to: &bytes)
    }

    /// Appends text like "2025-01-10 01:00:05 America/Los_Angeles".
    static func appendPacific(_ moment: StoreTime, to bytes: inout [UInt8]) {
        append(moment, offsetSeconds: pacificOffset(at: moment), separator: UInt8(ascii: " "), to: &bytes)
        append(" America/Los_Angeles", to: &bytes)
    }

    /// Returns text like "2025-01-10T09:00:05Z".
    static func internet(_ moment: StoreTime) -> String {
        var bytes: [UInt8] = []
        append(moment, offsetSeconds: 0, separator: UInt8(ascii: "T"), to: &bytes)
        return String(decoding: bytes, as: UTF8.self) + "Z"
    }

    /// Returns seconds east of Greenwich in California, by the rule of 2007: daylight time lasts from the second Sunday
    /// of March at 2:00 standard time to the first Sunday of November at 2:00 daylight time. No date here is older.
    static func pacificOffset(at moment: StoreTime) -> Int64 {
        let seconds = moment.wholeSecond.milliseconds / 1000
        let year = civil(day: floored(seconds, by: 86400)).year
        let start = sunday(2, year: year, month: 3) * 86400 + 10 * 3600
        let end = sunday(1, year: year, month: 11) * 86400 + 9 * 3600
        return seconds >= start && seconds < end ? -7 * 3600 : -8 * 3600
    }

    private static func append(_ moment: StoreTime, offsetSeconds: Int64, separator: UInt8, to bytes: inout [UInt8]) {
        let seconds = moment.wholeSecond.milliseconds / 1000 + offsetSeconds
        let day = floored(seconds, by: 86400)
        let clock = seconds - day * 86400
        let date = civil(day: day)
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 19) { text in
            twoDigits(date.year / 100, to: text, at: 0)
            twoDigits(date.year % 100, to: text, at: 2)
            text[4] = UInt8(ascii: "-")
            twoDigits(date.month, to: text, at: 5)
            text[7] = UInt8(ascii: "-")
            twoDigits(date.day, to: text, at: 8)
            text[10] = separator
            twoDigits(clock / 3600, to: text, at: 11)
            text[13] = UInt8(ascii: ":")
            twoDigits(clock / 60 % 60, to: text, at: 14)
            text[16] = UInt8(ascii: ":")
            twoDigits(clock % 60, to: text, at: 17)
            bytes.append(contentsOf: text)
        }
    }

    private static func append(_ text: StaticString, to bytes: inout [UInt8]) {
        text.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    private static func twoDigits(_ number: Int64, to text: UnsafeMutableBufferPointer<UInt8>, at place: Int) {
        text[place] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / 10 % 10)
        text[place + 1] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number % 10)
    }

    private static func floored(_ value: Int64, by divisor: Int64) -> Int64 {
        let quotient = value / divisor
        return value % divisor < 0 ? quotient - 1 : quotient
    }

    /// Returns the day number (1970-01-01 is 0, a Thursday) of the n-th Sunday of a month.
    private static func sunday(_ nth: Int64, year: Int64, month: Int64) -> Int64 {
        let first = dayNumber(year: year, month: month, day: 1)
        let weekday = ((first + 4) % 7 + 7) % 7
        return first + (7 - weekday) % 7 + (nth - 1) * 7
    }

    /// Returns the day number by Howard Hinnant's days-from-civil, for the proleptic Gregorian calendar.
    private static func dayNumber(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = floored(shifted, by: 400)
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    /// Returns the date of a day number, the opposite of `dayNumber`.
    private static func civil(day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = day + 719_468
        let era = floored(shifted, by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
    }
}
