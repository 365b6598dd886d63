import Foundation
import Testing

@testable import perennial

@Suite("Files are read in blocks") struct BlockReaderTests {
    /// Blocks of a text through a file, so that the reader meets its own chunks.
    static func blocks(_ text: String, _ limits: LineLimits, from offset: Int = 0, line: Int = 1) async throws
        -> [LineBlock]
    {
        try await blocks(Data(text.utf8), limits, from: offset, line: line)
    }

    static func blocks(
        _ bytes: Data, _ limits: LineLimits, byteCount: Int? = nil, from offset: Int = 0, line: Int = 1
    ) async throws -> [LineBlock] {
        let url = FileManager.default.temporaryDirectory.appending(path: "perennial-\(UUID()).lines")
        try bytes.write(to: url)
        defer { try? FileManager.default.removeItem(at: url) }
        var reader = try BlockReader(
            FileHandle(forReadingFrom: url), name: "f", byteCount: byteCount, from: offset, line: line, limits: limits)
        var found: [LineBlock] = []
        while let block = try await reader.next() { found.append(block) }
        return found
    }

    static func reported(_ block: LineBlock) -> [String] {
        zip(block.numbers, block.lines).map { number, line in
            switch line {
            case .bytes(let range): "\(number):\(String(decoding: block.bytes[range], as: UTF8.self))"
            case .tooLong: "\(number):too long"
            }
        }
    }

    @Test(arguments: [1, 2, 3, 5, 7, 64], [1, 2, 100])
    func `lines depend neither on chunks nor on blocks`(chunkBytes: Int, blockLines: Int) async throws {
        var limits = LineLimits(lineBytesMax: 5, blockLinesMax: blockLines, chunkBytes: chunkBytes)
        let text = "a\n\nbcd\r\n0123456789\nend"
        for enough in [1, 4, 1 << 20] {
            limits.blockBytesEnough = enough
            let blocks = try await Self.blocks(text, limits)
            #expect(blocks.flatMap(Self.reported) == ["1:a", "2:", "3:bcd", "4:too long", "5:end"])
            #expect(blocks.allSatisfy { (1...blockLines).contains($0.lines.count) })
            var end = 0
            for block in blocks {
                #expect(block.offsets.lowerBound == end)
                end = block.offsets.upperBound
            }
            #expect(end == text.utf8.count)
            #expect(try await Self.blocks("", limits).isEmpty)
            #expect(try await Self.blocks("0123456789", limits).flatMap(Self.reported) == ["1:too long"])
        }
    }

    @Test func `reading goes on where a block ended`() async throws {
        let limits = LineLimits(lineBytesMax: 20, blockLinesMax: 2, chunkBytes: 8)
        let text = (1...9).map { "line \($0)\n" }.joined() + "a line that is longer than twenty\nlast"
        let whole = try await Self.blocks(text, limits)
        #expect(whole.count == 6)
        for block in whole {
            let rest = try await Self.blocks(
                text, limits, from: block.offsets.upperBound, line: block.numbers.upperBound)
            #expect(
                rest.flatMap(Self.reported)
                    == Array(whole.flatMap(Self.reported).dropFirst(block.numbers.upperBound - 1)))
        }
    }

    @Test(arguments: [1, 3, 64])
    func `a file in another form is refused as a whole`(chunkBytes: Int) async throws {
        let line = "{\"app\":\"a\"}\n"
        for encoding in [String.Encoding.utf16, .utf16LittleEndian, .utf16BigEndian] {
            let bytes = try #require(line.data(using: encoding))
            let error = await #expect(throws: Failure.self) {
                try await Self.blocks(bytes, LineLimits(chunkBytes: chunkBytes))
            }
            #expect(error?.description.hasPrefix("f is text in UTF-16; ") == true)
        }
        let error = await #expect(throws: Failure.self) {
            try await Self.blocks(Data([0x1F, 0x8B, 8, 0]), LineLimits(chunkBytes: chunkBytes))
        }
        #expect(error?.description == "f is compressed with gzip; give what zcat makes of it.")
        let marked = try await Self.blocks("\u{FEFF}\(line)", LineLimits(chunkBytes: chunkBytes))
        #expect(marked.flatMap(Self.reported) == ["1:\u{FEFF}{\"app\":\"a\"}"])
    }

    @Test(arguments: [1, 3, 64])
    func `a file that changed its size is refused, before its new lines where it grew`(chunkBytes: Int) async throws {
        let text = "a\n0123456789\nb\n"
        let limits = LineLimits(lineBytesMax: 5, chunkBytes: chunkBytes)
        for byteCount in 0...text.utf8.count + 1 {
            let read = try? await Self.blocks(Data(text.utf8), limits, byteCount: byteCount)
            #expect(
                read?.flatMap(Self.reported) == (byteCount != text.utf8.count ? nil : ["1:a", "2:too long", "3:b"]))
        }
    }

    @Test func `a block is cut by its bytes`() async throws {
        let limits = LineLimits(blockBytesEnough: 100, chunkBytes: 30)
        let blocks = try await Self.blocks(String(repeating: "0123456789\n", count: 40), limits)
        #expect(blocks.allSatisfy { $0.bytes.count <= 110 })
        #expect(blocks.reduce(0) { $0 + $1.lines.count } == 40)
    }
}
