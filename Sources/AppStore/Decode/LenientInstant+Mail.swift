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
            let year = year(words[2]), let offset = utcOffsetSeconds(words[4])
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

    private static func utcOffsetSeconds(_ zone: Substring) -> Int64? {
        zones[String(zone)].map { $0 * 3600 } ?? offset(Array(zone.utf8)[...])
    }

    /// Reads a number of one or two digits.
    private static func number(_ word: Substring) -> Int? {
        (1...2).contains(word.utf8.count) ? digits(Array(word.utf8)[...]) : nil
    }
}
