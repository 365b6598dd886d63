/// Some lines of a file that follow each other: what is read, understood and stored together.
struct LineBlock: Sendable {
    /// One line of a block.
    enum Line: Sendable, Hashable {
        /// Where its bytes stand in the block, without the line's end.
        case bytes(Range<Int>)
        /// It is longer than allowed; its bytes were skipped.
        case tooLong
    }

    /// The number of its first line, from 1.
    let firstNumber: Int
    /// Where it begins and ends in the file, in bytes.
    let offsets: Range<Int>
    /// The bytes its lines stand in.
    let bytes: [UInt8]
    /// Its lines, at least one.
    let lines: [Line]

    /// The numbers of its lines.
    var numbers: Range<Int> { firstNumber..<(firstNumber + lines.count) }
}

/// How much is read at once.
struct LineLimits: Sendable {
    /// The longest line, in bytes.
    var lineBytesMax = 12 << 20
    /// Lines of a block, at most.
    var blockLinesMax = 1_000
    /// A block takes no further line once it has this many bytes.
    var blockBytesEnough = 8 << 20
    /// Bytes read at once.
    var chunkBytes = 1 << 20
}
