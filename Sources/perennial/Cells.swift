extension String {
    /// The number of cells of a terminal that the text takes: two for wide and fullwidth characters and for emoji, none
    /// for marks that are drawn on the character before them.
    var cells: Int {
        // A character of ASCII is one byte; control characters were made visible.
        utf8.allSatisfy { $0 < 0x80 } ? utf8.count : reduce(0) { $0 + $1.cells }
    }

    /// The text in at most this many cells: both ends of a longer one, since ids differ at their ends.
    func shortened(to width: Int) -> String {
        guard cells > width else { return self }
        guard width > 1 else { return String(prefix(fitting(width))) }
        let end = (width - 1) / 2
        return prefix(fitting(end)) + "…" + suffix(reversed().fitting(width - 1 - end))
    }

    /// The text with spaces on the right, or on the left of a number, up to this many cells.
    func padded(to width: Int, isNumber: Bool = false) -> String {
        let padding = String(repeating: " ", count: max(0, width - cells))
        return isNumber ? padding + self : self + padding
    }
}

extension Collection<Character> {
    /// The number of whole characters at the beginning that fit into this many cells.
    fileprivate func fitting(_ width: Int) -> Int {
        var left = width
        return prefix { character in
            left -= character.cells
            return left >= 0
        }.count
    }
}

extension Character {
    /// A sequence of emoji (joined, coloured, a flag, a keycap) is one picture.
    fileprivate var cells: Int {
        let first = unicodeScalars.first?.properties
        let isEmoji = first?.isEmojiPresentation == true
        // Variation selector 16 asks for the picture of a character that is text by itself.
        if isEmoji || (first?.isEmoji == true && unicodeScalars.contains("\u{FE0F}")) { return 2 }
        return unicodeScalars.reduce(0) { $0 + $1.cells }
    }
}

extension Unicode.Scalar {
    /// Wide and fullwidth (Unicode's annex 11, version 16), besides what is emoji by itself. Ideographs that are not
    /// assigned yet belong to them.
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2329...0x232A, 0x2E80...0x303E, 0x3041...0x3247, 0x3250...0xA4C6, 0xA960...0xA97C,
        0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6B, 0xFF01...0xFF60, 0xFFE0...0xFFE6,
        0x16FE0...0x18D08, 0x1AFF0...0x1B2FB, 0x1F200...0x1F265, 0x20000...0x2FFFD, 0x30000...0x3FFFD,
    ]
    /// Vowels and final consonants of Hangul, which are drawn into the syllable that begins before them.
    private static let joining: [ClosedRange<UInt32>] = [0x1160...0x11FF, 0xD7B0...0xD7FF]

    fileprivate var cells: Int {
        switch properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .control: 0
        // A soft hyphen is shown.
        case .format: value == 0xAD ? 1 : 0
        default: isAny(of: Self.joining) ? 0 : isAny(of: Self.wide) ? 2 : 1
        }
    }

    private func isAny(of ranges: [ClosedRange<UInt32>]) -> Bool { ranges.contains { $0.contains(value) } }
}
