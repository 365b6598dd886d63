/// The members of one object, read as Apple's documentation means them whatever type they came as.
struct LenientFields {
    let object: JSONValue

    /// Text; nil when absent, null or empty.
    func text(_ name: String) -> String? {
        object.member(name)?.scalar
    }

    /// An id: text with every digit, also when it came as a JSON integer of any length.
    func identifier(_ name: String) -> String? {
        guard let text = text(name) else { return nil }
        // A proxy that passes numbers through floating point writes 1.0E15: below 2^53 the integer is still exact.
        guard text.utf8.contains(UInt8(ascii: ".")), let whole = LenientNumber.whole(text) else { return text }
        return String(whole)
    }

    /// A whole number; nil when absent or not one.
    func whole(_ name: String) -> Int64? {
        text(name).flatMap(LenientNumber.whole)
    }

    /// A truth: true, 1, "1" and "true" in any case, and their opposites; nil when absent or something else.
    func flag(_ name: String) -> Bool? {
        switch text(name)?.lowercased() {
        case "true", "1": true
        case "false", "0": false
        default: nil
        }
    }

    /// Whether the row says an instant in any of its forms, readable or not.
    func mentions(_ name: String) -> Bool {
        [name, name + "_ms", name + "_pst", name + "_formatted"].contains { text($0) != nil }
    }

    /// An instant in milliseconds since 1970: `name_ms` first, the text form only when that is missing. A plain field of
    /// digits is milliseconds too (legacy `expires_date`). Instants before 1970 or after 9999 count as absent.
    func instant(_ name: String) -> Int64? {
        if let milliseconds = whole(name + "_ms") { return LenientInstant.believable(milliseconds) }
        if let milliseconds = whole(name) { return LenientInstant.believable(milliseconds) }
        return text(name).flatMap(LenientInstant.milliseconds)
            ?? text(name + "_formatted").flatMap(LenientInstant.milliseconds)
    }
}

/// Whole numbers as proxies and old answers write them.
enum LenientNumber {
    /// `"21002"`, `21002` and `21002.0`; nil for anything else, or where floating point would have lost digits.
    static func whole(_ text: String) -> Int64? {
        if let exact = Int64(text) { return exact }
        guard text.utf8.allSatisfy({ JSONReader.isNumberByte($0) }),
            let number = Double(text), number.rounded() == number, number.magnitude < 9_007_199_254_740_992
        else { return nil }
        return Int64(number)
    }
}
