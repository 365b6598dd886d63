import Foundation

/// What one pass over the bytes of an answer shows without decoding it.
package struct AnswerOutline: Sendable, Equatable {
    /// The parts of the body that stay the same between two answers of the same meaning: everything except the values
    /// of `request_date`, its other forms, and `latest_receipt`.
    package private(set) var lastingParts: [Range<Int>] = []
    /// The value of the body's only `request_date_ms`; nil if there is none, or more than one.
    package private(set) var requestedAt: Int64?
    /// Whether a `latest_receipt` has a text.
    package private(set) var holdsLatestReceipt = false
    private var statuses = 0
    private var zeroStatuses = 0
    private var requestInstants = 0

    /// Whether the body's only `status` is 0, wherever it stands.
    package var saysGenuine: Bool { statuses == 1 && zeroStatuses == 1 }

    init(of body: [UInt8]) {
        body.withUnsafeBytes { bytes in
            var kept = 0
            var position = 0
            while let quote = bytes.firstIndex(of: UInt8(ascii: "\""), from: position) {
                position = quote + 1
                if bytes.holds("status\"", at: position) {
                    statuses += 1
                    zeroStatuses += bytes.holdsZero(after: position + 7) ? 1 : 0
                } else if let value = passingValue(ofKeyAt: position, in: bytes) {
                    lastingParts.append(kept..<value.lowerBound)
                    kept = value.upperBound
                    position = value.upperBound
                }
            }
            lastingParts.append(kept..<bytes.count)
        }
        if requestInstants != 1 { requestedAt = nil }
    }

    /// Returns the string value after `"request_date`, `"request_date_ms` and so on, or after `"latest_receipt`, if the
    /// key's name begins at `name`; nil for every other key.
    private mutating func passingValue(ofKeyAt name: Int, in bytes: UnsafeRawBufferPointer) -> Range<Int>? {
        if bytes.holds("request_date", at: name) {
            guard let end = bytes.firstIndex(of: UInt8(ascii: "\""), from: name) else { return nil }
            let value = bytes.stringValue(after: end + 1)
            if bytes.holds("request_date_ms\"", at: name) {
                requestInstants += 1
                requestedAt = value.flatMap { Int64(String(decoding: bytes[$0.dropFirst().dropLast()], as: UTF8.self)) }
                if requestedAt ?? 0 <= 0 { requestedAt = nil }
            }
            return value
        }
        guard bytes.holds("latest_receipt\"", at: name), let value = bytes.stringValue(after: name + 15) else {
            return nil
        }
        holdsLatestReceipt = true
        return value
    }
}

extension UnsafeRawBufferPointer {
    /// Returns the string that follows a colon, including its quotes.
    fileprivate func stringValue(after index: Int) -> Range<Int>? {
        guard let start = value(after: index), self[start] == UInt8(ascii: "\"") else { return nil }
        return firstIndex(of: UInt8(ascii: "\""), from: start + 1).map { start..<($0 + 1) }
    }

    /// Whether the number 0 follows a colon.
    fileprivate func holdsZero(after index: Int) -> Bool {
        guard let start = value(after: index), self[start] == UInt8(ascii: "0"), start + 1 < count else { return false }
        return [UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: " "), UInt8(ascii: "\n")].contains(self[start + 1])
    }

    /// Returns where the value after a colon begins.
    private func value(after index: Int) -> Int? {
        var start = index
        while start < count, self[start] == UInt8(ascii: ":") || self[start] == UInt8(ascii: " ") { start += 1 }
        return start > index && start < count ? start : nil
    }

    fileprivate func holds(_ text: StaticString, at index: Int) -> Bool {
        guard index + text.utf8CodeUnitCount <= count, let base = baseAddress else { return false }
        return memcmp(base + index, text.utf8Start, text.utf8CodeUnitCount) == 0
    }

    /// Uses memchr(3), because the newest receipt alone has thousands of bytes without a quote.
    fileprivate func firstIndex(of byte: UInt8, from start: Int) -> Int? {
        guard start < count, let base = baseAddress, let found = memchr(base + start, Int32(byte), count - start)
        else { return nil }
        return UnsafeRawPointer(found) - base
    }
}
