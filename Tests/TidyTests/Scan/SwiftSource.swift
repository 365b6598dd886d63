/// A Swift file taken apart into code and comments, so that a word in a string or a comment is not taken for code.
///
/// Both halves have the line breaks of the original, so line numbers hold. Bare regex literals are read as code.
struct SwiftSource {
    /// The code; comments and the text of string literals are spaces. Interpolated expressions are code.
    let code: [UInt8]
    /// The comments; everything else is spaces.
    let comments: [UInt8]

    /// Takes `text` apart.
    init(_ text: String) {
        var scanner = Scanner(bytes: Array(text.utf8))
        scanner.run()
        code = scanner.code
        comments = scanner.comments
    }
}

/// Walks the bytes once; `stack` says where it stands.
private struct Scanner {
    /// What surrounds the current byte.
    enum Place: Equatable {
        case code
        /// Inside `\(…)`, with so many parentheses open.
        case interpolation(open: Int)
        /// Inside a literal with so many `#`, of one line or of several.
        case string(hashes: Int, isMultiline: Bool)
        case lineComment
        case blockComment(depth: Int)
    }

    let bytes: [UInt8]
    var code: [UInt8]
    var comments: [UInt8]
    var stack = [Place.code]
    var index = 0

    init(bytes: [UInt8]) {
        self.bytes = bytes
        code = bytes.map { $0 == newline ? newline : UInt8(ascii: " ") }
        comments = code
    }

    mutating func run() {
        while index < bytes.count {
            switch stack.last ?? .code {
            case .code: readCode()
            case .interpolation(let open): readInterpolation(open)
            case .string(let hashes, let isMultiline): readString(hashes, isMultiline)
            case .lineComment: readLineComment()
            case .blockComment(let depth): readBlockComment(depth)
            }
        }
    }

    private func starts(with text: String, at position: Int) -> Bool {
        bytes[min(position, bytes.count)...].starts(with: text.utf8)
    }

    private mutating func readCode() {
        // Nearly every byte begins neither a comment nor a literal.
        guard [UInt8(ascii: "/"), UInt8(ascii: "#"), UInt8(ascii: "\"")].contains(bytes[index]) else {
            code[index] = bytes[index]
            index += 1
            return
        }
        if starts(with: "//", at: index) {
            stack.append(.lineComment)
        } else if starts(with: "/*", at: index) {
            stack.append(.blockComment(depth: 0))
        } else if openString() {
            return
        } else {
            code[index] = bytes[index]
            index += 1
        }
    }

    private mutating func openString() -> Bool {
        var quote = index
        while quote < bytes.count, bytes[quote] == UInt8(ascii: "#") { quote += 1 }
        guard quote < bytes.count, bytes[quote] == UInt8(ascii: "\"") else { return false }
        let isMultiline = starts(with: "\"\"\"", at: quote)
        stack.append(.string(hashes: quote - index, isMultiline: isMultiline))
        index = quote + (isMultiline ? 3 : 1)
        return true
    }

    private mutating func readInterpolation(_ open: Int) {
        let byte = bytes[index]
        guard byte == UInt8(ascii: "(") || byte == UInt8(ascii: ")") else { return readCode() }
        let stillOpen = byte == UInt8(ascii: "(") ? open + 1 : open - 1
        stack.removeLast()
        if stillOpen > 0 { stack.append(.interpolation(open: stillOpen)) }
        code[index] = byte
        index += 1
    }

    private mutating func readString(_ hashes: Int, _ isMultiline: Bool) {
        guard [UInt8(ascii: "\\"), UInt8(ascii: "\""), newline].contains(bytes[index]) else {
            index += 1
            return
        }
        let marks = String(repeating: "#", count: hashes)
        let end = (isMultiline ? "\"\"\"" : "\"") + marks
        if starts(with: end, at: index) {
            stack.removeLast()
            index += end.utf8.count
        } else if starts(with: "\\" + marks + "(", at: index) {
            index += 1 + hashes
            code[index] = bytes[index]
            stack.append(.interpolation(open: 1))
            index += 1
        } else if starts(with: "\\" + marks, at: index) {
            index += 2 + hashes
        } else {
            if bytes[index] == newline, !isMultiline { stack.removeLast() }
            index += 1
        }
    }

    private mutating func readLineComment() {
        if bytes[index] == newline {
            stack.removeLast()
        } else {
            comments[index] = bytes[index]
            index += 1
        }
    }

    private mutating func readBlockComment(_ depth: Int) {
        let isStart = starts(with: "/*", at: index)
        let isEnd = starts(with: "*/", at: index)
        comments[index] = bytes[index]
        guard isStart || isEnd else {
            index += 1
            return
        }
        comments[index + 1] = bytes[index + 1]
        index += 2
        stack.removeLast()
        let deeper = isStart ? depth + 1 : depth - 1
        if deeper > 0 { stack.append(.blockComment(depth: deeper)) }
    }
}
