import Testing

@testable import perennial

@Suite("Commands read secrets and receipts from files") struct InputTests {
    @Test func `a secret loses its line's end and nothing else`() throws {
        #expect(try InputFile.secret(in: Array(" a b \r\n\n".utf8), name: "f") == " a b ")
        for bad in ["", "\n\r\n", "a\nb"] {
            #expect(throws: Failure.self) { try InputFile.secret(in: Array(bad.utf8), name: "f") }
        }
        #expect(throws: Failure.self) { try InputFile.secret(in: [0xFF, 0xFE], name: "f") }
    }

    @Test func `a file that cannot be read is named with the reason of the system`() {
        // The beginning of the memory, which nothing has in use.
        let error = #expect(throws: Failure.self) { try InputFile(path: "/proc/self/mem").contents(bytesMax: 9) }
        #expect(error?.description == "/proc/self/mem cannot be read: Input/output error; give another file.")
    }

    @Test func `a device's receipt file is encoded, text stays`() {
        #expect(InputFile.receipt(in: [0x30, 0x82, 0x01]) == "MIIB")
        #expect(InputFile.receipt(in: Array("MIIB\n".utf8)) == "MIIB\n")
    }
}
