import NIOCore

/// A chunked body of unknown length, read as it arrives.
struct ChunkedBody {
    private enum State {
        case size
        case data(left: Int)
        case trailer
    }

    private static let lineBytesMax = 1024

    private(set) var bytes: [UInt8] = []
    private var state = State.size

    /// Reads the bytes so far; returns true when the last chunk has been read.
    mutating func read(_ buffer: inout ByteBuffer, max: Int) throws(RequestReader.Refusal) -> Bool {
        while true {
            switch state {
            case .size:
                guard let line = try Self.line(&buffer) else { return false }
                if line.isEmpty { continue }
                let digits = line.prefix { $0 != ";" && $0 != " " }
                guard let size = Int(digits, radix: 16), size >= 0 else { throw .badRequest }
                guard size <= max - bytes.count else { throw .tooLarge }
                state = size == 0 ? .trailer : .data(left: size)
            case .data(let left):
                guard let part = buffer.readBytes(length: min(left, buffer.readableBytes)), !part.isEmpty else {
                    return false
                }
                bytes += part
                state = part.count == left ? .size : .data(left: left - part.count)
            case .trailer:
                guard let line = try Self.line(&buffer) else { return false }
                if line.isEmpty { return true }
            }
        }
    }

    /// Returns a line without its line end; nil when it is incomplete.
    private static func line(_ buffer: inout ByteBuffer) throws(RequestReader.Refusal) -> String? {
        guard let end = buffer.readableBytesView.firstIndex(of: 0x0A) else {
            guard buffer.readableBytes <= lineBytesMax else { throw .badRequest }
            return nil
        }
        let text = buffer.readString(length: end - buffer.readerIndex) ?? ""
        buffer.moveReaderIndex(forwardBy: 1)
        return text.hasSuffix("\r") ? String(text.dropLast()) : text
    }
}
