import Foundation
import Testing

@testable import PerennialClient

@Suite("Uploads in a folder are whole or not there")
struct UploadFolderTests {
    private let server = PerennialServer(at: URL(filePath: "/"), app: "com.example.app")

    @Test("Damaged files are set aside, not lost and not sent; drafts go")
    func damaged() async throws {
        try await withFolder { folder in
            let uploads = (0..<6).map { Upload(receipt: "AQ==", customer: "c\($0)") }
            let first = try await UploadQueue(server, storage: .folder(folder))
            for upload in uploads { try await first.add(upload) }
            func file(_ number: Int) -> URL { folder.appending(path: uploads[number].id + ".upload") }
            let whole = try Data(contentsOf: file(0))
            try Data().write(to: file(0))
            try whole.prefix(whole.count / 2).write(to: file(1))
            // Another receipt than the one that was stored under this name.
            try Data(String(decoding: whole, as: UTF8.self).replacing("AQ==", with: "Ag==").utf8).write(to: file(2))
            try Data(String(decoding: whole, as: UTF8.self).replacing(#""form":1"#, with: #""form":2"#).utf8)
                .write(to: file(3))
            let draft = folder.appending(path: uploads[4].id + ".draft")
            try Data("half".utf8).write(to: draft)
            try Data("not ours".utf8).write(to: folder.appending(path: "notes.txt"))
            for _ in 0..<2 {
                let again = try await UploadQueue(server, storage: .folder(folder))
                #expect(await again.uploads == Array(uploads[4...]))
            }
            let aside = try FileManager.default.contentsOfDirectory(
                at: folder.appending(path: "unreadable"), includingPropertiesForKeys: nil)
            #expect(aside.count == 4)
            #expect(try aside.map { try Data(contentsOf: $0).count }.contains(whole.count / 2))
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(!names.contains(draft.lastPathComponent) && names.contains("notes.txt"))
        }
    }

    @Test("The names of damaged files are reported once")
    func reported() async throws {
        try await withFolder { folder in
            _ = try await UploadQueue(server, storage: .folder(folder))
            try Data("damaged".utf8).write(to: folder.appending(path: "abc.upload"))
            #expect(try await UploadQueue(server, storage: .folder(folder)).unreadable == ["abc"])
            #expect(try await UploadQueue(server, storage: .folder(folder)).unreadable == [])
        }
    }

    @Test("The folder is for its account alone, and removing twice is no error")
    func folder() async throws {
        try await withFolder { folder in
            let storage = UploadStorage.folder(folder.appending(path: "in/side"))
            #expect(try await storage.load().isEmpty)
            let attributes = try FileManager.default.attributesOfItem(atPath: folder.appending(path: "in/side").path)
            #expect(attributes[.posixPermissions] as? Int == 0o700)
            let entry = UploadStorage.Entry(id: "a", bytes: Data("first".utf8))
            try await storage.save(entry)
            try await storage.save(UploadStorage.Entry(id: "a", bytes: Data("second".utf8)))
            #expect(try await storage.load().map(\.bytes) == [Data("second".utf8)])
            for _ in 0..<2 { try await storage.remove("a") }
            #expect(try await storage.load().isEmpty)
            await #expect(throws: (any Error).self) { try await storage.setAside("a") }
        }
    }

    @Test("The back-off doubles its bound, adds it to the advice, and has a limit")
    func backOff() {
        let limits = UploadLimits()
        func longest(_ attempts: Int, _ advised: Double? = nil) -> Double {
            limits.retrySeconds(after: attempts, advised: advised) { $0.upperBound }
        }
        #expect([1, 2, 3, 12, 13, 1_000_000].map { longest($0) } == [1, 2, 4, 2_048, 3_600, 3_600])
        #expect(longest(1, 5) == 6 && longest(3, 60) == 64 && longest(1, 1e9) == 3_600 && longest(1, -5) == 1)
        #expect(limits.retrySeconds(after: 5, advised: 5) { $0.lowerBound } == 5)
        let drawn = (0..<200).map { _ in limits.retrySeconds(after: 4, advised: 10) }
        #expect(drawn.allSatisfy { (10...18).contains($0) } && Set(drawn).count > 100)
    }
}
