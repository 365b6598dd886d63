/// A word of code (a name, a keyword) or a single mark, with its place.
struct Word: Equatable {
    let text: String
    /// Counted from 1.
    let line: Int

    /// The words and marks of code in order; white space is dropped.
    static func all(in code: [UInt8]) -> [Word] {
        var words: [Word] = []
        var line = 1
        var index = 0
        while index < code.count {
            let start = index
            while index < code.count, isPartOfName(code[index]) { index += 1 }
            if index > start {
                words.append(Word(text: String(decoding: code[start..<index], as: UTF8.self), line: line))
                continue
            }
            if code[index] == newline {
                line += 1
            } else if code[index] > UInt8(ascii: " ") {
                words.append(Word(text: String(decoding: [code[index]], as: UTF8.self), line: line))
            }
            index += 1
        }
        return words
    }

    private static func isPartOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), 0x80...: true
        default: false
        }
    }
}
