import Foundation
import NIOHTTP1

/// How long a server asks to be left alone: the header `Retry-After` in the forms it has in the wild.
///
/// RFC 9110 section 10.2.3 knows seconds and an HTTP date; Apple's newer API sends the moment in milliseconds since 1970.
enum RetryAfter {
    /// A number this large is no delay but a moment, in seconds or in milliseconds since 1970.
    static let momentSecondsMin = 1e9
    static let momentMillisecondsMin = 1e11

    /// Seconds to wait, never negative; nil when nothing readable is asked. The longest of several.
    ///
    /// Moments are compared with the server's own clock (the header `Date`), and with `now` only when it gives none.
    static func seconds(in headers: HTTPHeaders, now: Date) -> Double? {
        let clock = headers.first(name: "date").flatMap(date) ?? now
        return headers[canonicalForm: "retry-after"].compactMap { seconds(String($0), since: clock) }.max()
            .map { max(0, $0) } ?? dated(headers, since: clock)
    }

    /// A date holds a comma, at which lists are split.
    private static func dated(_ headers: HTTPHeaders, since clock: Date) -> Double? {
        headers["retry-after"].compactMap(date).map { max(0, $0.timeIntervalSince(clock)) }.max()
    }

    private static func seconds(_ text: String, since clock: Date) -> Double? {
        let trimmed = text.trimmingCharacters(in: .whitespaces)
        guard !trimmed.isEmpty, trimmed.utf8.allSatisfy({ $0 >= 0x2B && $0 <= 0x39 && $0 != 0x2F }),
            let number = Double(trimmed), number.isFinite
        else { return nil }
        if number >= momentMillisecondsMin { return number / 1000 - clock.timeIntervalSince1970 }
        if number >= momentSecondsMin { return number - clock.timeIntervalSince1970 }
        return number
    }

    /// An HTTP date in one of its three forms.
    private static func date(_ text: String) -> Date? {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        return ["EEE, dd MMM yyyy HH:mm:ss zzz", "EEEE, dd-MMM-yy HH:mm:ss zzz", "EEE MMM d HH:mm:ss yyyy"].lazy
            .compactMap { form in
                formatter.dateFormat = form
                return formatter.date(from: text.trimmingCharacters(in: .whitespaces))
            }.first
    }
}
