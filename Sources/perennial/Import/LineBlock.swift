/// Consecutive lines of a file, which are read, parsed and stored together.
struct LineBlock: Sendable {
    /// One line of a block.
    enum Line: Sendable, Hashable {
        /// The place of its bytes in the block, without the line end.
        case bytes(Range<Int>)
        /// The line is longer than allowed; its bytes were skipped.
        case tooLong
    }

    /// The number of its first line, from 1.
    let firstNumber: Int
    /// Its start and end in the file, in bytes.
    let offsets: Range<Int>
    /// The bytes of its lines.
    let bytes: [UInt8]
    /// Its lines, at least one.
    let lines: [Line]

    /// The numbers of its lines.
    var numbers: Range<Int> { firstNumber..<(firstNumber + lines.count) }
}

/// The limits of one read.
struct LineLimits: Sendable {
    /// The longest line, in bytes.
    var lineBytesMax = 12 << 20
    /// The most lines of a block.
    var blockLinesMax = 1_000
    /// A block takes no further line once it has this many bytes.
    var blockBytesEnough = 8 << 20
    /// Bytes read at once.
    var chunkBytes = 1 << 20
}
