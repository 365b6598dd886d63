/// Instants as milliseconds since 1970, and Apple's text form of them.
enum LenientInstant {
    /// The last millisecond of the year 9999.
    static let latest: Int64 = 253_402_300_799_999

    /// The instant itself, or nil when no purchase can have been then.
    static func believable(_ milliseconds: Int64) -> Int64? {
        (0...latest).contains(milliseconds) ? milliseconds : nil
    }

    /// Reads `yyyy-MM-dd HH:mm:ss Etc/GMT` the same way on every machine: no locale, no time zone of the host. Also takes
    /// `T` between date and time, and `Z`, `GMT` or `UTC` at the end. Another zone is not guessed at.
    static func milliseconds(_ text: String) -> Int64? {
        let bytes = Array(text.utf8)
        guard bytes.count > 19, bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"),
            bytes[10] == UInt8(ascii: " ") || bytes[10] == UInt8(ascii: "T"),
            bytes[13] == UInt8(ascii: ":"), bytes[16] == UInt8(ascii: ":"),
            ["Z", "Etc/GMT", "GMT", "UTC"].contains(zone(bytes[19...])),
            let year = digits(bytes[0..<4]), let month = digits(bytes[5..<7]), let day = digits(bytes[8..<10]),
            let hour = digits(bytes[11..<13]), let minute = digits(bytes[14..<16]), let second = digits(bytes[17..<19]),
            year >= 1970, (1...12).contains(month), (1...daysIn(month, of: year)).contains(day),
            hour < 24, minute < 60, second < 60
        else { return nil }
        let seconds = ((daysSince1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
        return Int64(seconds) * 1000
    }

    private static func zone(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: bytes.drop { $0 == UInt8(ascii: " ") }, as: UTF8.self)
    }

    private static func digits(_ bytes: ArraySlice<UInt8>) -> Int? {
        var number = 0
        for byte in bytes {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            number = number * 10 + Int(byte - UInt8(ascii: "0"))
        }
        return number
    }

    private static func isLeap(_ year: Int) -> Bool {
        year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    }

    private static func daysIn(_ month: Int, of year: Int) -> Int {
        switch month {
        case 4, 6, 9, 11: 30
        case 2: isLeap(year) ? 29 : 28
        default: 31
        }
    }

    private static func daysSince1970(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let past = year - 1
        let years = past * 365 + past / 4 - past / 100 + past / 400
        let months = (1..<month).reduce(0) { $0 + daysIn($1, of: year) }
        return years + months + day - 1 - 719_162
    }
}
