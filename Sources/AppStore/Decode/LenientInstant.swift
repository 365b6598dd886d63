/// Reads instants as milliseconds since 1970, and Apple's text form of them.
enum LenientInstant {
    static let latest: Int64 = 253_402_300_799_999

    /// Returns the instant itself; nil if no purchase can have happened then.
    static func believable(_ milliseconds: Int64) -> Int64? { (0...latest).contains(milliseconds) ? milliseconds : nil }

    /// Reads `yyyy-MM-dd HH:mm:ss Etc/GMT` the same way on every machine, also with `T` between date and time, and `Z`,
    /// `GMT` or `UTC` at the end; RFC 3339 with an offset; and RFC 822. It never guesses at another zone.
    static func milliseconds(_ text: String) -> Int64? {
        let bytes = Array(text.utf8)
        return apples(bytes) ?? milliseconds(withOffset: bytes[...]) ?? dateOfMail(text)
    }

    private static func apples(_ bytes: [UInt8]) -> Int64? {
        guard bytes.count > 19, let clock = clock(bytes[...]) else { return nil }
        let zone = String(decoding: bytes[19...].drop { $0 == UInt8(ascii: " ") }, as: UTF8.self)
        return ["Z", "Etc/GMT", "GMT", "UTC"].contains(zone) ? clock * 1000 : nil
    }

    /// Reads RFC 3339 to the millisecond as receipts write it: `2021-04-03T22:38:45Z`, from Xcode `…:45+0300`.
    static func milliseconds(withOffset text: ArraySlice<UInt8>) -> Int64? {
        guard text.count > 19, let clock = clock(text) else { return nil }
        var rest = text.dropFirst(19)
        var milliseconds: Int64 = 0
        if rest.first == UInt8(ascii: ".") {
            let fraction = rest.dropFirst().prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            guard !fraction.isEmpty else { return nil }
            for place in 0..<3 {
                let digit = place < fraction.count ? fraction[fraction.startIndex + place] - UInt8(ascii: "0") : 0
                milliseconds = milliseconds * 10 + Int64(digit)
            }
            rest = rest[fraction.endIndex...]
        }
        guard let offset = offset(rest) else { return nil }
        return believable((clock - offset) * 1000 + milliseconds)
    }

    /// Reads an offset as seconds east of Greenwich: `Z`, `+0300` or `+03:00`.
    static func offset(_ zone: ArraySlice<UInt8>) -> Int64? {
        switch zone.first {
        case UInt8(ascii: "Z"): return zone.count == 1 ? 0 : nil
        case UInt8(ascii: "+"), UInt8(ascii: "-"):
            let numbers = zone.dropFirst().filter { $0 != UInt8(ascii: ":") }
            guard numbers.count == 4, let hours = digits(numbers[..<2]), let minutes = digits(numbers[2...]),
                hours < 24, minutes < 60
            else { return nil }
            return Int64(hours * 3600 + minutes * 60) * (zone.first == UInt8(ascii: "-") ? -1 : 1)
        default: return nil
        }
    }

    /// Reads the date and time in the first 19 bytes as seconds since 1970, as if in UTC; nil if there are fewer bytes.
    private static func clock(_ text: ArraySlice<UInt8>) -> Int64? {
        let at = text.startIndex
        guard text.count >= 19, text[at + 4] == UInt8(ascii: "-"), text[at + 7] == UInt8(ascii: "-"),
            text[at + 10] == UInt8(ascii: " ") || text[at + 10] == UInt8(ascii: "T"),
            text[at + 13] == UInt8(ascii: ":"), text[at + 16] == UInt8(ascii: ":"),
            let year = digits(text[at..<(at + 4)]), let month = digits(text[(at + 5)..<(at + 7)]),
            let day = digits(text[(at + 8)..<(at + 10)]), let hour = digits(text[(at + 11)..<(at + 13)]),
            let minute = digits(text[(at + 14)..<(at + 16)]), let second = digits(text[(at + 17)..<(at + 19)])
        else { return nil }
        return seconds(year: year, month: month, day: day, hour: hour, minute: minute, second: second)
    }

    /// Returns seconds since 1970, as if in UTC; nil for a date or a time of day that does not exist, or before 1970.
    static func seconds(year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) -> Int64? {
        guard year >= 1970, (1...12).contains(month), (1...daysIn(month, of: year)).contains(day),
            hour < 24, minute < 60, second < 60
        else { return nil }
        return Int64(((daysSince1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
    }

    static func digits(_ bytes: ArraySlice<UInt8>) -> Int? {
        var number = 0
        for byte in bytes {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            number = number * 10 + Int(byte - UInt8(ascii: "0"))
        }
        return number
    }

    private static func isLeap(_ year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

    private static func daysIn(_ month: Int, of year: Int) -> Int {
        switch month {
        case 4, 6, 9, 11: 30
        case 2: isLeap(year) ? 29 : 28
        default: 31
        }
    }

    private static let daysBefore = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334]

    private static func daysSince1970(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let past = year - 1
        let years = past * 365 + past / 4 - past / 100 + past / 400
        let months = daysBefore[month - 1] + (month > 2 && isLeap(year) ? 1 : 0)
        return years + months + day - 1 - 719_162
    }
}

extension LenientInstant {
    private static let weekdays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]
    /// The offsets, in hours east of Greenwich, of the zones that RFC 822 names.
    private static let zones: [String: Int64] = [
        "ut": 0, "utc": 0, "gmt": 0, "z": 0,
        "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7,
    ]

    /// Reads the dates of RFC 822 and its successors: `Wed, 12 Nov 2014 15:10:33 +0000`. The weekday and the seconds
    /// are optional, the year may have two digits, and a comment may follow. The zone is one of `zones` or an offset.
    static func dateOfMail(_ text: String) -> Int64? {
        var words = text.prefix { $0 != "(" }.lowercased().split(separator: " ")
        if let first = words.first, first.last == "," {
            guard weekdays.contains(String(first.dropLast())) else { return nil }
            words.removeFirst()
        }
        guard words.count == 5, let day = number(words[0]), let month = months.firstIndex(of: String(words[1])),
            let year = year(words[2]),
            let offset = zones[String(words[4])].map({ $0 * 3600 }) ?? offset(Array(words[4].utf8)[...])
        else { return nil }
        let time = words[3].split(separator: ":", omittingEmptySubsequences: false).map(number)
        guard (2...3).contains(time.count), let hour = time[0], let minute = time[1],
            let second = time.count == 3 ? time[2] : 0,
            let clock = seconds(year: year, month: month + 1, day: day, hour: hour, minute: minute, second: second)
        else { return nil }
        return believable((clock - offset) * 1000)
    }

    /// Reads a year. Two digits of 50 or more belong to the last century (RFC 5322, section 4.3).
    private static func year(_ word: Substring) -> Int? {
        switch word.utf8.count {
        case 2: number(word).map { $0 < 50 ? 2000 + $0 : 1900 + $0 }
        case 4: digits(Array(word.utf8)[...])
        default: nil
        }
    }

    private static func number(_ word: Substring) -> Int? {
        (1...2).contains(word.utf8.count) ? digits(Array(word.utf8)[...]) : nil
    }
}
