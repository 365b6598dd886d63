import Dispatch
import Foundation

/// One line of a file of lines.
struct Line: Sendable {
    /// What a line holds.
    enum Content: Sendable {
        /// The bytes without the line's end.
        case bytes([UInt8])
        /// The line is longer than allowed; its bytes were skipped.
        case tooLong
    }

    /// The line's number, from 1.
    let number: Int
    /// What it holds.
    let content: Content
    /// Bytes of the file up to the end of this line.
    let endOffset: Int
}

/// Reads lines of bounded length without ever holding the whole file.
///
/// Reading blocks, so it happens on a queue of its own and never on the cooperative pool.
struct LineReader {
    private let handle: FileHandle
    private let lineBytesMax: Int
    private let chunkBytes: Int
    private let queue = DispatchQueue(label: "perennial.imported.read")
    private var buffer: [UInt8] = []
    private var position = 0
    private var offset = 0
    private var number = 0
    private var isAtEnd = false

    /// A reader of an open file.
    init(_ handle: FileHandle, lineBytesMax: Int, chunkBytes: Int = 1 << 18) {
        self.handle = handle
        self.lineBytesMax = lineBytesMax
        self.chunkBytes = chunkBytes
    }

    /// The next line; nil at the end of the file. Throws when the file cannot be read.
    mutating func next() async throws -> Line? {
        var isTooLong = false
        var searched = position
        while true {
            if let end = lineEnd(from: searched) {
                return line(upTo: end, next: end + 1, isTooLong: isTooLong)
            }
            if isAtEnd {
                guard position < buffer.count || isTooLong else { return nil }
                return line(upTo: buffer.count, next: buffer.count, isTooLong: isTooLong)
            }
            if isTooLong || buffer.count - position > lineBytesMax {
                isTooLong = true
                offset += buffer.count - position
                position = buffer.count
            }
            buffer.removeFirst(position)
            position = 0
            searched = buffer.count
            let chunk = try await read()
            if chunk.isEmpty { isAtEnd = true } else { buffer += chunk }
        }
    }

    private mutating func line(upTo end: Int, next: Int, isTooLong: Bool) -> Line {
        number += 1
        offset += next - position
        defer { position = next }
        guard !isTooLong, end - position <= lineBytesMax else {
            return Line(number: number, content: .tooLong, endOffset: offset)
        }
        var bytes = buffer[position..<end]
        if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        return Line(number: number, content: .bytes(Array(bytes)), endOffset: offset)
    }

    /// memchr(3), because most of an import's time would otherwise go into looking for newlines.
    private func lineEnd(from start: Int) -> Int? {
        buffer.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, start < bytes.count,
                let found = memchr(base + start, Int32(UInt8(ascii: "\n")), bytes.count - start)
            else { return nil }
            return UnsafeRawPointer(found) - base
        }
    }

    private func read() async throws -> [UInt8] {
        let (handle, count) = (handle, chunkBytes)
        return try await withCheckedThrowingContinuation { continuation in
            queue.async {
                continuation.resume(with: Result { try handle.read(upToCount: count).map { [UInt8]($0) } ?? [] })
            }
        }
    }
}
