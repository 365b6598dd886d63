import Foundation
import TestSupport
import Testing

@Suite("A command whose output is lost says so, with status 1")
struct LostOutputTests {
    private static let sentence = "perennial: Standard output did not take everything: "

    @Test(
        "A full disk and a closed standard output are failures",
        arguments: [["--help"], ["--version"], ["--generate-completion-script", "bash"], ["report", "list"]],
        ["> /dev/full", ">&-"])
    func withoutDatabase(arguments: [String], redirection: String) async throws {
        let process = try PerennialProcess(arguments, environment: [:], redirection: redirection)
        #expect(await process.end() == 1)
        #expect(process.said.hasPrefix(Self.sentence) && process.said.count(where: \.isNewline) == 1, "\(process.said)")
        try process.forget()
    }

    @Test("A file that may not grow has a part of the output, and the command fails")
    func limited() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "cut-\(UUID())")
        let process = try PerennialProcess(
            ["report", "list", "--format", "json"], environment: [:], limit: "-f 1", redirection: "> '\(file.path)'")
        #expect(await process.end() == 1)
        #expect(process.said.hasPrefix(Self.sentence), "\(process.said)")
        #expect(try Data(contentsOf: file).count > 0)
        try FileManager.default.removeItem(at: file)
        try process.forget()
    }

    @Test("No connection becomes standard output, and a watch ends", arguments: ["> /dev/full", ">&-"])
    func withDatabase(redirection: String) async throws {
        try await withMigratedDatabase { _, connectionString in
            for arguments in [["report", "stuck_work", "--format", "csv"], ["status", "--watch"]] {
                let process = try PerennialProcess(
                    arguments, environment: ["DATABASE_URL": connectionString], redirection: redirection)
                #expect(await process.end() == 1)
                #expect(process.said.contains(Self.sentence), "\(process.said)")
                try process.forget()
            }
        }
    }

    @Test("A lost key is named, so that it can be revoked")
    func secret() async throws {
        try await withMigratedDatabase { _, connectionString in
            let process = try PerennialProcess(
                ["key", "create", "--scope", "read"], environment: ["DATABASE_URL": connectionString],
                redirection: "> /dev/full")
            #expect(await process.end() == 1)
            let said = process.said
            #expect(said.contains(Self.sentence) && said.contains("run `perennial key revoke 1`"), "\(said)")
            #expect(said.ranges(of: Self.sentence).count == 1, "\(said)")
            try process.forget()
        }
    }

    @Test("A reader that went away ends no work and is no failure, a watch ends, and a lost key is named")
    func readerGone() async throws {
        func run(_ arguments: [String], _ environment: [String: String] = [:]) async throws -> (Int32, String) {
            var ends: [Int32] = [-1, -1]
            try #require(pipe(&ends) == 0)
            close(ends[0])
            let (process, said) = (Process(), Pipe())
            process.executableURL = PretendWorld.productsFolder.appendingPathComponent("perennial")
            process.arguments = arguments
            process.environment = environment
            process.standardOutput = FileHandle(fileDescriptor: ends[1], closeOnDealloc: true)
            process.standardError = said
            try process.runHearingSignals()
            let status = await process.ended()
            #expect(process.terminationReason == .exit)
            return (status, String(decoding: try said.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self))
        }
        for arguments in [["--help"], ["report", "list"]] {
            let (status, said) = try await run(arguments)
            #expect(status == 0 && said.isEmpty, "\(said)")
        }
        try await withMigratedDatabase { _, connectionString in
            let environment = ["DATABASE_URL": connectionString]
            #expect(try await run(["status", "--watch"], environment).0 == 0)
            let (status, said) = try await run(["key", "create", "--scope", "read"], environment)
            #expect(status == 1 && said.contains("run `perennial key revoke 1`"), "\(said)")
        }
    }
}
