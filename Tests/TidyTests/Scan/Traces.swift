/// Whether code calls something that ends the process. An HTTP client that nothing shuts down ends it too, after a throw
/// whose reason is then never seen; `withHTTPClient` shuts its client down, and one that is never freed needs no end. A
/// client with several event loops ends it where a connection closes at the wrong time: see `AppStoreOptions.withClient`.
func processEndingCalls(in source: SwiftSource) -> [String] {
    let words = Word.all(in: source.code)
    return words.indices.dropLast().compactMap { index in
        switch (words[index].text, words[index + 1].text) {
        case ("try", "!"): "line \(words[index].line): a forced try"
        case ("fatalError", "("): "line \(words[index].line): a fatal error"
        case ("HTTPClient", "(") where words[max(0, index - 4)].text != "static":
            "line \(words[index].line): an HTTP client that a throw leaves running"
        case ("withHTTPClient", "(") where !words[index...].prefix(5).map(\.text).contains("loop"):
            "line \(words[index].line): an HTTP client that may have several event loops"
        default: nil
        }
    }
}

/// Lines that promise work instead of doing it.
func unfinishedLines(in text: String) -> [String] {
    let marks = ["TO" + "DO", "FIX" + "ME"]
    guard marks.contains(where: { text.contains($0) }) else { return [] }
    return lines(of: text) { line in marks.contains { line.contains($0) } }
}

/// Lines that name a folder of one machine.
func homeFolderLines(in text: String) -> [String] {
    let folders = ["work", "root", "home", "Users"].map { "/" + $0 + "/" }
    // Whole texts first: hardly any holds such a name.
    guard folders.contains(where: { text.contains($0) }) else { return [] }
    return lines(of: text) { line in
        folders.contains { folder in
            line.ranges(of: folder).contains { range in
                // A path from the root of the disk, not a part of a longer one such as `/etc/home/`.
                guard range.lowerBound > line.startIndex else { return true }
                let before = line[line.index(before: range.lowerBound)]
                return !(before.isLetter || before.isNumber || before == "." || before == "_" || before == "}")
            }
        }
    }
}

/// Lines with a bare issue number: `#` and digits with no project's name before it.
func issueNumberLines(in text: String) -> [String] {
    guard text.contains("#") else { return [] }
    return lines(of: text) { line in
        line.matches(of: #/#[0-9]+/#).contains { match in
            guard match.range.lowerBound > line.startIndex else { return true }
            let before = line[line.index(before: match.range.lowerBound)]
            return before.isWhitespace || before == "("
        }
    }
}

/// Lines with words that technical English does without. The Unix account `nobody` of a shell script is no such word.
func wordyLines(in text: String) -> [String] {
    let words: Set = ["whoever", "somebody", "nobody", "everybody", "anybody", "told"]
    // Whole texts first: hardly any holds such a word.
    let small = text.lowercased()
    guard words.contains(where: { small.contains($0) }) else { return [] }
    return lines(of: text) { line in
        line.lowercased().split { !($0.isLetter || $0.isNumber || $0 == "_") }.contains { words.contains(String($0)) }
            && !line.contains("echo nobody")
    }
}

private func lines(of text: String, where isBad: (Substring) -> Bool) -> [String] {
    text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
        .filter { isBad($0.element) }
        .map { "line \($0.offset + 1): \($0.element)" }
}
