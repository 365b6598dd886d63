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

    private static func append(
        _ moment: StoreTime, offsetSeconds: Int64, separator: UInt8, to bytes: inout [UInt8]
    ) {
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
