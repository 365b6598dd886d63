import Foundation
import Testing

@testable import perennial

@Suite("Commands read secrets and receipts from files") struct InputTests {
    @Test func `a secret loses its line's end and nothing else`() throws {
        #expect(try InputFile.secret(in: Array(" a b \r\n\n".utf8), name: "f", "it") == " a b ")
        for bad in ["", "\n\r\n", "a\nb"] {
            #expect(throws: Failure.self) { try InputFile.secret(in: Array(bad.utf8), name: "f", "it") }
        }
        #expect(throws: Failure.self) { try InputFile.secret(in: [0xFF, 0xFE], name: "f", "it") }
    }

    @Test(arguments: [[], Array("\n".utf8), Array("whsec_a\nwhsec_b".utf8), [0xFF, 0xFE]])
    func `a file without a webhook's secret is refused by naming that secret`(bytes: [UInt8]) throws {
        let url = FileManager.default.temporaryDirectory.appending(path: "perennial-\(UUID()).secret")
        try Data(bytes).write(to: url)
        defer { try? FileManager.default.removeItem(at: url) }
        let error = #expect(throws: Failure.self) { try InputFile(path: url.path).webhookSecret() }
        let said = error?.description ?? ""
        #expect(said.hasPrefix(url.path) && said.contains("whsec_") && !said.contains("App Store"), "\(said)")
    }

    @Test func `a file that cannot be read is named with the reason of the system`() {
        // The beginning of the memory, which nothing has in use.
        let error = #expect(throws: Failure.self) { try InputFile(path: "/proc/self/mem").contents(bytesMax: 9) }
        #expect(error?.description == "/proc/self/mem cannot be read: Input/output error; give another file.")
    }

    @Test func `a byte order mark is no part of a text`() throws {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        #expect(try InputFile.secret(in: mark + Array("a\r\n".utf8), name: "f", "it") == "a")
        #expect(InputFile.receipt(in: mark + Array("MIIB".utf8)) == "MIIB")
        #expect(InputFile.text(in: mark + mark) == "\u{FEFF}")
        #expect(InputFile.text(in: Array("a\0".utf8)) == nil && InputFile.text(in: [0xE9]) == nil)
    }

    @Test func `a file in another form than UTF-8 is refused by its name and form`() throws {
        let url = FileManager.default.temporaryDirectory.appending(path: "perennial-\(UUID()).text")
        defer { try? FileManager.default.removeItem(at: url) }
        let utf16 = try #require("app: a".data(using: .utf16LittleEndian))
        for (bytes, form) in [
            (utf16, "is text in UTF-16; "), (Data([0x1F, 0x8B, 8]), "is compressed with gzip; "),
            (Data([0x61, 0xE9]), "is no text in UTF-8; "),
        ] {
            try bytes.write(to: url)
            let error = #expect(throws: Failure.self) { try InputFile(path: url.path).text(bytesMax: 99) }
            #expect(error?.description.hasPrefix("\(url.path) \(form)") == true)
        }
        try utf16.write(to: url)
        #expect(throws: Failure.self) { try InputFile(path: url.path).receipt() }
        #expect(throws: Failure.self) { try SettingsSources.textOfFile(url.path) }
    }

    @Test func `a file has its size through links too, and a pipe has none`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "perennial-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (file, link) = (folder.appending(path: "file"), folder.appending(path: "link"))
        try Data("abc".utf8).write(to: file)
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
        #expect(InputFile(path: file.path).byteCount == 3 && InputFile(path: link.path).byteCount == 3)
        let pipe = folder.appending(path: "pipe").path
        #expect(mkfifo(pipe, 0o600) == 0)
        for none in ["-", pipe, "/dev/null"] { #expect(InputFile(path: none).byteCount == nil) }
    }

    @Test func `a device's receipt file is encoded, text stays`() {
        #expect(InputFile.receipt(in: [0x30, 0x82, 0x01]) == "MIIB")
        #expect(InputFile.receipt(in: Array("MIIB\n".utf8)) == "MIIB\n")
    }
}
