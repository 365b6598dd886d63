/// Names that say nothing about what is inside.
let emptyNames: Set = ["util", "utils", "utility", "utilities", "common", "core", "helper", "helpers", "manager"]

/// The words of a name: `HTTPClientManager` is http, client, manager.
func wordsOfName(_ name: String) -> [String] {
    var words: [String] = []
    let letters = Array(name)
    for (index, letter) in letters.enumerated() {
        guard letter.isLetter || letter.isNumber else {
            words.append("")
            continue
        }
        let follows = index > 0 ? letters[index - 1] : nil
        let precedes = index + 1 < letters.count ? letters[index + 1] : nil
        let startsWord =
            letter.isUppercase && (follows?.isLowercase == true || precedes?.isLowercase == true)
        if words.isEmpty || startsWord { words.append("") }
        words[words.count - 1].append(contentsOf: letter.lowercased())
    }
    return words.filter { !$0.isEmpty }
}

/// Whether a name contains a word that says nothing.
func isEmptyName(_ name: String) -> Bool {
    wordsOfName(name).contains { emptyNames.contains($0) }
}

/// The names of the types that a source declares; extensions of other people's types are not ours to name.
func declaredTypes(in source: SwiftSource) -> [String] {
    let kinds: Set = ["struct", "class", "enum", "actor", "protocol", "typealias"]
    let words = Word.all(in: source.code)
    return words.indices.dropLast().compactMap { index in
        let name = words[index + 1].text
        guard kinds.contains(words[index].text), name.first?.isUppercase == true else { return nil }
        guard index == 0 || words[index - 1].text != "import" else { return nil }
        return name
    }
}
