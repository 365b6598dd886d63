import Foundation

extension AppStoreAnswer {
    /// The parts of the body that stay the same between two answers of the same meaning: everything except the values
    /// of `request_date`, its other forms, and `latest_receipt`.
    package var lastingParts: [Range<Int>] {
        body.withUnsafeBytes { bytes in
            var parts: [Range<Int>] = []
            var kept = 0
            var position = 0
            while let quote = bytes.firstIndex(of: UInt8(ascii: "\""), from: position) {
                guard let value = bytes.passingValue(ofKeyAt: quote) else {
                    position = quote + 1
                    continue
                }
                parts.append(kept..<value.lowerBound)
                kept = value.upperBound
                position = value.upperBound
            }
            parts.append(kept..<bytes.count)
            return parts
        }
    }
}

extension UnsafeRawBufferPointer {
    /// Returns the string value after `"request_date`, `"request_date_ms` and so on, or after `"latest_receipt`, if
    /// `index` is the key's opening quote; nil for every other quote.
    fileprivate func passingValue(ofKeyAt index: Int) -> Range<Int>? {
        let name = index + 1
        if holds("request_date", at: name) {
            guard let end = firstIndex(of: UInt8(ascii: "\""), from: name) else { return nil }
            return stringValue(after: end + 1)
        }
        return holds("latest_receipt\"", at: name) ? stringValue(after: name + 15) : nil
    }

    /// Returns the string that follows a colon, including its quotes.
    private func stringValue(after index: Int) -> Range<Int>? {
        var start = index
        while start < count, [UInt8(ascii: ":"), UInt8(ascii: " ")].contains(self[start]) { start += 1 }
        guard start > index, start < count, self[start] == UInt8(ascii: "\"") else { return nil }
        return firstIndex(of: UInt8(ascii: "\""), from: start + 1).map { start..<($0 + 1) }
    }

    private func holds(_ text: StaticString, at index: Int) -> Bool {
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
