import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import perennial

@Suite("The commands in README.md and docs/ work as printed") struct DocumentedCommandTests {
    @Test func `the program reads every call of it`() throws {
        var count = 0
        for document in try CommandBlock.documents {
            for block in try CommandBlock.all(in: document) {
                for call in block.calls {
                    count += 1
                    do {
                        _ = try Perennial.parseAsRoot(call)
                    } catch {
                        #expect(Perennial.exitCode(for: error) == .success, "\(block): \(call): \(error)")
                    }
                }
            }
        }
        #expect(count > 80)
    }

    @Test func `each exclusion is of a block that is there`() throws {
        let blocks = try CommandBlock.documents.flatMap(CommandBlock.all)
        for exclusion in Exclusion.all {
            #expect(
                blocks.contains { $0.document == exclusion.document && $0.text.hasPrefix(exclusion.beginning) },
                "\(exclusion)")
        }
        #expect(blocks.filter { $0.exclusion == nil }.count >= 12)
    }

    @Test func `words are read as a shell reads them`() {
        let line = #"a "b c" 'd "e"' >f | perennial import - # and "so' on"#
        #expect(ShellWords.commands(in: line) == [["a", "b c", #"d "e""#], ["perennial", "import", "-"]])
        let block = CommandBlock(document: "", line: 1, text: "X=1 \\\n  perennial worker --once\nperennialx a")
        #expect(block.calls == [["worker", "--once"]])
    }

    @Test(.timeLimit(.minutes(8)))
    func `a reader of README.md sees in the demo what it says, and stops and starts it without a loss`() async throws {
        try await withTestDatabase { _, address in
            let demo = try Demo(database: address)
            do {
                try await demo.start()
                let readme = try await demo.run(try CommandBlock.all(in: "README.md"))
                #expect(readme.status == 0, "\(readme.said)")
                for part in [
                    #""granted":true"#, "com.example.journal | active", "position |", "t       |", "COMMISSION_PERCENT",
                    "Registered com.example.app",
                ] {
                    #expect(readme.said.contains(part), "\(part) is missing in \(readme.said)")
                }
                for document in try CommandBlock.documents.dropFirst() {
                    let result = try await demo.run(try CommandBlock.all(in: document))
                    #expect(result.status == 0, "\(document): \(result.said)")
                }
                try await demo.stop()
                let before = try demo.kept
                try await demo.start()
                #expect(try demo.kept == before)
                let checked = try await demo.shell("perennial verify")
                #expect(checked.status == 0, "\(checked.said)")
                try await demo.stop()
            } catch {
                print(demo.said)
                demo.kill()
                throw error
            }
            try demo.remove()
        }
    }
}
