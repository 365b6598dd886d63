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
}
