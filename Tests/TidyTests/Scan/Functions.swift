/// A function of a Swift source with its length, from the line of its name to its closing brace.
struct FunctionLength: Equatable {
    let name: String
    /// The line of its name, counted from 1.
    let line: Int
    let lineCount: Int

    /// Every function, initialiser, deinitialiser and subscript that has a body.
    static func all(in source: SwiftSource) -> [FunctionLength] {
        let words = Word.all(in: source.code)
        return words.indices.compactMap { index in
            guard startsFunction(words, at: index), let open = bodyStart(words, after: index) else { return nil }
            let line = words[index].line
            let isNamed = words[index].text == "func" && index + 1 < words.count
            return FunctionLength(
                name: words[isNamed ? index + 1 : index].text, line: line,
                lineCount: bodyEnd(words, from: open) - line + 1)
        }
    }

    private static func startsFunction(_ words: [Word], at index: Int) -> Bool {
        let before = index > 0 ? words[index - 1].text : ""
        switch words[index].text {
        case "func": return before != "." && before != "`"
        case "init", "deinit", "subscript": return ![".", "`", "(", ","].contains(before)
        default: return false
        }
    }

    /// Where the body opens; nil for a requirement of a protocol, which the next declaration follows at once.
    private static func bodyStart(_ words: [Word], after start: Int) -> Int? {
        let declarations: Set = [
            "func", "init", "deinit", "subscript", "var", "let", "case", "struct", "class", "enum", "protocol",
            "associatedtype", "typealias", "static", "mutating", "public", "private", "@", "}",
        ]
        var depth = 0
        for index in words.indices[(start + 1)...] {
            switch words[index].text {
            case "(", "[": depth += 1
            case ")", "]": depth -= 1
            case "{" where depth == 0: return index
            case let text where depth == 0 && index > start + 1 && declarations.contains(text):
                // `@Sendable` and `@escaping` stand in a result type, on the line of an arrow.
                if text == "@", words[index - 1].text == ">" || words[index - 1].line == words[index].line { continue }
                return nil
            default: continue
            }
        }
        return nil
    }

    private static func bodyEnd(_ words: [Word], from open: Int) -> Int {
        var depth = 0
        for word in words[open...] {
            if word.text == "{" { depth += 1 }
            if word.text == "}" { depth -= 1 }
            if depth == 0 { return word.line }
        }
        return words.last?.line ?? 0
    }
}
