package import Foundation
package import NIOHTTP1

/// Reads how long a server asks clients to wait: the header `Retry-After` in the forms that occur in the wild.
///
/// RFC 9110 section 10.2.3 defines seconds and an HTTP date; Apple's newer API sends the instant in milliseconds since
/// 1970.
package enum RetryAfter {
    /// A number this large is not a delay but an instant, in seconds or in milliseconds since 1970.
    static let momentSecondsMin = 1e9
    static let momentMillisecondsMin = 1e11

    /// Returns the seconds to wait, never negative; nil if there is no readable value. Of several values, the longest
    /// wait.
    ///
    /// Instants are compared with the server's own clock (the header `Date`), and with `now` only if the server gives
    /// none.
    package static func seconds(in headers: HTTPHeaders, now: Date) -> Double? {
        let clock = headers.first(name: "date").flatMap(date) ?? now
        return headers[canonicalForm: "retry-after"].compactMap { seconds(String($0), since: clock) }.max()
            .map { max(0, $0) } ?? dated(headers, since: clock)
    }

    /// Reads HTTP dates from unsplit headers: a date contains a comma, at which lists are split.
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

    /// Reads an HTTP date in any of its three forms.
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
