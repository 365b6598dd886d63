import Foundation
import Testing

@testable import perennial

@Suite struct ImportTests {
    /// Lines of a text through a file, so that the reader meets its own chunks.
    static func lines(_ text: String, lineBytesMax: Int, chunkBytes: Int) async throws -> [String] {
        let url = FileManager.default.temporaryDirectory.appending(path: "perennial-\(UUID()).lines")
        try Data(text.utf8).write(to: url)
        defer { try? FileManager.default.removeItem(at: url) }
        var reader = LineReader(
            try FileHandle(forReadingFrom: url), lineBytesMax: lineBytesMax, chunkBytes: chunkBytes)
        var found: [String] = []
        while let line = try await reader.next() {
            switch line.content {
            case .bytes(let bytes):
                found.append("\(line.number):\(String(decoding: bytes, as: UTF8.self))@\(line.endOffset)")
            case .tooLong: found.append("\(line.number):too long@\(line.endOffset)")
            }
        }
        return found
    }

    @Test(arguments: [1, 2, 3, 5, 7, 64])
    func `lines do not depend on the chunks`(chunkBytes: Int) async throws {
        let text = "a\n\nbcd\r\n0123456789\nend"
        let found = try await Self.lines(text, lineBytesMax: 5, chunkBytes: chunkBytes)
        #expect(found == ["1:a@2", "2:@3", "3:bcd@8", "4:too long@19", "5:end@22"])
        #expect(try await Self.lines("", lineBytesMax: 5, chunkBytes: chunkBytes) == [])
        #expect(try await Self.lines("0123456789", lineBytesMax: 5, chunkBytes: chunkBytes) == ["1:too long@10"])
    }

    @Test func `a line becomes a submission`() throws {
        let line =
            #"{"app":"a.b","customer":"c","receipt":"MII=","price":4.99,"currency":"USD","storefront":"USA","x":1}"#
        let submission = try ImportLine.submission(in: Array(line.utf8), with: JSONDecoder())
        #expect(submission.bundleID == "a.b")
        #expect(submission.customer == "c")
        #expect(submission.receipt == "MII=")
        #expect(submission.priceMilliunits == 4_990)
        #expect(submission.imported)
        let text = #"{"app":"a.b","customer":"c","receipt":"MII=","price":"9223372036854775.807","currency":"USD"}"#
        #expect(try ImportLine.submission(in: Array(text.utf8), with: JSONDecoder()).priceMilliunits == .max)
    }

    @Test(arguments: [
        ("{", "this is not JSON"), ("[]", "this is no JSON object"), ("{}", "app is missing"),
        (#"{"app":"a","customer":1,"receipt":"x"}"#, "customer is not text"),
        (#"{"app":"a","customer":"c"}"#, "receipt is missing"),
        (#"{"app":"a","customer":null,"receipt":"x"}"#, "customer is not text"),
        (#"{"app":"","customer":"c","receipt":"x"}"#, "app is empty; give the app's bundle id"),
        (
            #"{"app":"a","customer":"c","receipt":"x","price":"1,5","currency":"EUR"}"#,
            "price: '1,5' is no price; write 4.99, with at most 3 decimals"
        ),
        (#"{"app":"a","customer":"c","receipt":"x","price":1}"#, "price and currency go together"),
    ])
    func `a bad line has its reason`(line: String, reason: String) {
        do {
            _ = try ImportLine.submission(in: Array(line.utf8), with: JSONDecoder())
            Issue.record("\(line) was accepted.")
        } catch {
            #expect("\(error)" == reason)
        }
    }

    @Test func `progress tells share, rate and bad lines`() {
        var progress = ImportProgress(bytesTotal: 200)
        progress.bytesDone = 50
        progress.new = 10
        progress.known = 2
        progress.bad = 1
        progress.line = 13
        #expect(progress.bar(elapsedSeconds: 2) == "[#####...............] 25%  12 receipts, 6/s, 1 bad")
        #expect(progress.note(elapsedSeconds: 0) == "line 13, 25% of the file: 12 receipts, 0/s, 1 bad")
        #expect(progress.summary == "Receipts stored: 12 (10 new, 2 known before); lines read: 13, bad: 1.")
        progress.bytesTotal = nil
        #expect(progress.bar(elapsedSeconds: 1) == "12 receipts, 12/s, 1 bad")
    }

    @Test func `a secret loses its line's end and nothing else`() throws {
        #expect(try SecretFile.secret(in: Array(" a b \r\n\n".utf8), name: "f") == " a b ")
        for bad in ["", "\n\r\n", "a\nb"] {
            #expect(throws: Failure.self) { try SecretFile.secret(in: Array(bad.utf8), name: "f") }
        }
        #expect(throws: Failure.self) { try SecretFile.secret(in: [0xFF, 0xFE], name: "f") }
    }

    @Test func `a device's receipt file is encoded, text stays`() {
        #expect(ReceiptFile.receipt(in: [0x30, 0x82, 0x01]) == "MIIB")
        #expect(ReceiptFile.receipt(in: Array("MIIB\n".utf8)) == "MIIB\n")
    }
}
