/// Finds the slot of a key. Every key of every row is looked up once, so names are grouped by length and compared in
/// words of eight bytes.
final class FieldNames: Sendable {
    static let known = FieldNames()

    /// The number of slots.
    let count: Int
    /// The names by length.
    private let names: [(key: KeyWords, slot: Int)]
    /// The range of `names` for every length.
    private let groups: [Range<Int>]

    private init() {
        var spelled = AnswerField.allCases.map { (name: Array($0.name.utf8), slot: $0.slot) }
        for date in AnswerDate.allCases {
            for form in AnswerDate.Form.allCases {
                spelled.append((Array((date.name + form.suffix).utf8), date.slot(form)))
            }
        }
        let byLength = (0...KeyWords.bytesMax).map { length in spelled.filter { $0.name.count == length } }
        var groups: [Range<Int>] = []
        for group in byLength {
            let start = groups.last?.upperBound ?? 0
            groups.append(start..<(start + group.count))
        }
        count = spelled.count
        self.groups = groups
        names = byLength.joined().map { name, slot in (name.withUnsafeBytes { KeyWords($0) }, slot) }
    }

    /// Returns the slot of a key; nil if the key is not read.
    func slot(of key: UnsafeRawBufferPointer) -> Int? {
        guard key.count <= KeyWords.bytesMax, !groups[key.count].isEmpty else { return nil }
        let words = KeyWords(key)
        for place in groups[key.count] where names[place].key == words { return names[place].slot }
        return nil
    }
}

/// All bytes of a key as numbers. Keys of the same length are equal if these numbers are.
struct KeyWords: Equatable {
    /// The most bytes of a key; longer keys are never read.
    static let bytesMax = 40

    private let words: (UInt64, UInt64, UInt64, UInt64, UInt64)

    /// Creates the words of a key of at most `bytesMax` bytes. The words at its end overlap.
    init(_ key: UnsafeRawBufferPointer) {
        guard key.count >= 8 else {
            words = (key.reduce(0) { $0 << 8 | UInt64($1) }, 0, 0, 0, 0)
            return
        }
        func word(_ place: Int) -> UInt64 {
            key.loadUnaligned(fromByteOffset: min(place * 8, key.count - 8), as: UInt64.self)
        }
        words = (word(0), word(1), word(2), word(3), word(4))
    }

    static func == (one: KeyWords, other: KeyWords) -> Bool { one.words == other.words }
}
