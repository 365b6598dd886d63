/// The modules that a Swift source imports, in order; `import struct Foundation.Data` is Foundation.
func importedModules(in source: SwiftSource) -> [String] {
    let kinds: Set = ["struct", "class", "enum", "protocol", "typealias", "func", "var", "let", "actor"]
    let words = Word.all(in: source.code)
    return words.indices.compactMap { index in
        guard words[index].text == "import", index + 1 < words.count else { return nil }
        guard index == 0 || words[index - 1].text != "." else { return nil }
        let isOfOneKind = kinds.contains(words[index + 1].text) && index + 2 < words.count
        return words[index + (isOfOneKind ? 2 : 1)].text
    }
}
