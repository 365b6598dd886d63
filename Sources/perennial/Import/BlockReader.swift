import ArgumentParser
import Dispatch
import Foundation

/// A reader of a file in blocks of lines, which never has more of it in memory than a block and a chunk. Reading blocks
/// the thread, so it happens on a queue of its own and never on the cooperative pool.
struct BlockReader {
    private let handle: FileHandle
    private let name: String
    private let byteCount: Int?
    private let limits: LineLimits
    private let queue = DispatchQueue(label: "perennial.imported.read")
    private var buffer: [UInt8] = []
    /// The place in the buffer where the search for newlines continues.
    private var searched = 0
    private var lines: [LineBlock.Line] = []
    private var lineStart = 0
    /// Whether the line being read is too long, so that its bytes are dropped.
    private var isSkipping = false
    private var isAtEnd = false
    private var number: Int
    private var blockOffset: Int
    private var offset: Int

    /// Creates a reader of an open file, which failures call `name`. A regular file is read from `offset`, where line
    /// `number` begins. A file with more or fewer bytes than `byteCount` changed since, and is refused.
    init(
        _ handle: FileHandle, name: String, byteCount: Int? = nil, from offset: Int = 0, line number: Int = 1,
        limits: LineLimits = LineLimits()
    ) throws {
        self.handle = handle
        self.name = name
        self.byteCount = byteCount
        self.limits = limits
        self.number = number
        self.offset = offset
        blockOffset = offset
        if offset > 0 { try handle.seek(toOffset: UInt64(offset)) }
    }

    /// Returns the next block; nil at the end of the file. Throws when the file cannot be read.
    mutating func next() async throws -> LineBlock? {
        while true {
            while let newline = nextNewline() {
                endLine(at: newline, nextLine: newline + 1)
                if lines.count >= limits.blockLinesMax || lineStart >= limits.blockBytesEnough { return block() }
            }
            if buffer.count - lineStart > limits.lineBytesMax { dropLongLine() }
            if isAtEnd {
                if let byteCount, offset + buffer.count - lineStart < byteCount {
                    throw Failure("\(name) was cut while it was read; import it again once it is complete.")
                }
                if lineStart < buffer.count || isSkipping { endLine(at: buffer.count, nextLine: buffer.count) }
                return lines.isEmpty ? nil : block()
            }
            let chunk = try await read()
            if chunk.isEmpty { isAtEnd = true } else { buffer += chunk }
            if offset == 0 { try InputFile.requireUTF8(buffer, name: name) }
            if let byteCount, offset + buffer.count - lineStart > byteCount {
                throw Failure("\(name) grew while it was read; import it again once it is complete.")
            }
        }
    }

    /// Finds the next newline with memchr(3): other searches would take most of the time.
    private mutating func nextNewline() -> Int? {
        let found = buffer.withUnsafeBytes { bytes -> Int? in
            guard let base = bytes.baseAddress, searched < bytes.count,
                let found = memchr(base + searched, Int32(UInt8(ascii: "\n")), bytes.count - searched)
            else { return nil }
            return UnsafeRawPointer(found) - base
        }
        searched = found.map { $0 + 1 } ?? buffer.count
        return found
    }

    private mutating func endLine(at end: Int, nextLine: Int) {
        offset += nextLine - lineStart
        if isSkipping || end - lineStart > limits.lineBytesMax {
            lines.append(.tooLong)
        } else {
            let hasReturn = end > lineStart && buffer[end - 1] == UInt8(ascii: "\r")
            lines.append(.bytes(lineStart..<(hasReturn ? end - 1 : end)))
        }
        isSkipping = false
        lineStart = nextLine
    }

    private mutating func dropLongLine() {
        isSkipping = true
        offset += buffer.count - lineStart
        buffer.removeSubrange(lineStart...)
        searched = buffer.count
    }

    private mutating func block() -> LineBlock {
        let block = LineBlock(
            firstNumber: number, offsets: blockOffset..<offset, bytes: Array(buffer[..<lineStart]), lines: lines)
        number += lines.count
        blockOffset = offset
        buffer.removeSubrange(..<lineStart)
        searched -= lineStart
        lines.removeAll(keepingCapacity: true)
        lineStart = 0
        return block
    }

    private func read() async throws -> [UInt8] {
        let (handle, name, count) = (handle, name, limits.chunkBytes)
        return try await withCheckedThrowingContinuation { continuation in
            queue.async {
                continuation.resume(with: Result { [UInt8](try handle.read(atMost: count, of: name)) })
            }
        }
    }
}

/// Consecutive lines of a file, which are read, parsed and stored together.
struct LineBlock: Sendable {
    enum Line: Sendable, Hashable {
        /// The place of its bytes in the block, without the line end.
        case bytes(Range<Int>)
        /// The line is longer than allowed; its bytes were skipped.
        case tooLong
    }

    let firstNumber: Int
    /// Its start and end in the file, in bytes.
    let offsets: Range<Int>
    let bytes: [UInt8]
    let lines: [Line]

    var numbers: Range<Int> { firstNumber..<(firstNumber + lines.count) }
}

struct LineLimits: Sendable {
    var lineBytesMax = 12 << 20
    var blockLinesMax = 1_000
    /// A block takes no further line once it has this many bytes.
    var blockBytesEnough = 8 << 20
    var chunkBytes = 1 << 20
}

/// A file named on the command line; `-` is standard input.
struct InputFile: Sendable {
    let path: String

    var name: String { path == "-" ? "standard input" : path }

    /// Opens the file. Throws one sentence when it cannot be opened.
    func open() throws -> FileHandle {
        guard path != "-" else { return .standardInput }
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
            throw Failure("\(path) does not exist; give the path of a file, or - for standard input.")
        }
        guard !isFolder.boolValue else { throw Failure("\(path) is a folder; give a file, or - for standard input.") }
        guard let handle = FileHandle(forReadingAtPath: path) else {
            throw Failure("\(path) cannot be opened; make it readable for this account.")
        }
        return handle
    }

    /// Returns the file's text without a byte order mark. Throws one sentence when it is no text in UTF-8.
    func text(bytesMax: Int) throws -> String {
        let bytes = try contents(bytesMax: bytesMax)
        try Self.requireUTF8(bytes, name: name)
        guard let text = Self.text(in: bytes) else {
            throw Failure("\(name) is no text in UTF-8; convert it, or give the right file.")
        }
        return text
    }

    /// Returns a text without a byte order mark; nil when the bytes are no UTF-8 or hold a NUL.
    static func text(in bytes: [UInt8]) -> String? {
        let hasMark = bytes.starts(with: [0xEF, 0xBB, 0xBF])
        return bytes.contains(0) ? nil : String(validating: hasMark ? bytes[3...] : bytes[...], as: UTF8.self)
    }

    /// Throws one sentence when a file that begins with `bytes` is in another form than text in UTF-8.
    static func requireUTF8(_ bytes: [UInt8], name: String) throws {
        let start = Array(bytes.prefix(2))
        if start == [0x1F, 0x8B] { throw Failure("\(name) is compressed with gzip; give what zcat makes of it.") }
        guard start == [0xFF, 0xFE] || start == [0xFE, 0xFF] || start.count == 2 && start.contains(0) else { return }
        throw Failure("\(name) is text in UTF-16; convert it to UTF-8, such as by iconv -f UTF-16 -t UTF-8.")
    }

    func contents(bytesMax: Int) throws -> [UInt8] {
        let handle = try open()
        var bytes: [UInt8] = []
        while true {
            let chunk = try handle.read(atMost: 1 << 16, of: name)
            guard !chunk.isEmpty else { return bytes }
            bytes += chunk
            guard bytes.count <= bytesMax else {
                throw Failure("\(name) has more than \(bytesMax) bytes; give the right file.")
            }
        }
    }

    /// The size of a regular file in bytes, also through a symbolic link; nil for standard input, pipes and devices.
    var byteCount: Int? {
        let target = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        guard path != "-", let attributes = try? FileManager.default.attributesOfItem(atPath: target),
            attributes[.type] as? FileAttributeType == .typeRegular
        else { return nil }
        return (attributes[.size] as? NSNumber)?.intValue
    }
}

extension FileHandle {
    /// Reads up to `count` bytes; none at the end. Throws one sentence with the file's name when it cannot be read.
    func read(atMost count: Int, of name: String) throws -> Data {
        do {
            return try read(upToCount: count) ?? Data()
        } catch {
            throw Failure("\(name) cannot be read: \(ExitStatus.sentence(for: error)); give another file.")
        }
    }
}

extension InputFile: ExpressibleByArgument {
    init?(argument: String) { self.init(path: argument) }
}

/// A file with one secret: other users could read a secret on the command line.
extension InputFile {
    /// The most bytes of a secret; Apple's have 32.
    private static let secretBytesMax = 4_096

    /// Returns the secret without trailing newlines. Throws when it is then empty, and says which secret is meant.
    func secret(_ meant: String = "the shared secret of App Store Connect") throws -> String {
        try Self.secret(in: try contents(bytesMax: Self.secretBytesMax), name: name, meant)
    }

    static func secret(in bytes: [UInt8], name: String, _ meant: String) throws -> String {
        guard var text = text(in: bytes) else {
            throw Failure("\(name) holds no text; write \(meant) into it.")
        }
        while text.last?.isNewline == true { text.removeLast() }
        guard !text.isEmpty else { throw Failure("\(name) is empty; write \(meant) into it.") }
        guard !text.contains(where: \.isNewline) else {
            throw Failure("\(name) has more than one line; write only \(meant) into it.")
        }
        return text
    }
}

/// A file with one receipt: base64 as an app sends it, or a device's receipt file unchanged.
extension InputFile {
    private static let receiptBytesMax = 12 << 20

    /// Returns the receipt as text. Bytes that are not text are the receipt itself, and are encoded.
    func receipt() throws -> String {
        let bytes = try contents(bytesMax: Self.receiptBytesMax)
        try Self.requireUTF8(bytes, name: name)
        return Self.receipt(in: bytes)
    }

    static func receipt(in bytes: [UInt8]) -> String { text(in: bytes) ?? Data(bytes).base64EncodedString() }
}
