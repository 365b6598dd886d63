import Foundation
import Testing

@Suite("Documents link to what exists, and scripts can be started")
struct LinkTests {
    /// The links of one document that lead nowhere.
    static func deadLinks(in document: SourceTree.File, of tree: SourceTree) -> [String] {
        linkedPaths(in: document.text).filter { path in
            guard let target = resolvedPath(path, from: document.path) else { return true }
            return !tree.exists(target)
        }
    }

    @Test("Links between documents lead somewhere")
    func links() throws {
        let tree = SourceTree.here
        let documents =
            try ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "sql/README.md"]
            .compactMap { try tree.file($0) } + tree.files(in: "docs", ending: [".md"])
        #expect(!documents.isEmpty)
        for document in documents {
            let dead = Self.deadLinks(in: document, of: tree)
            #expect(dead.isEmpty, "\(document.path) links to \(dead)")
        }
    }

    @Test("A dead link is found")
    func deadLink() {
        let text = "See [this](../LICENSE), [that](missing.md#part) and [others](../../outside.md)."
        let document = SourceTree.File(path: "docs/page.md", text: text)
        #expect(Self.deadLinks(in: document, of: SourceTree.here) == ["missing.md", "../../outside.md"])
    }

    @Test(
        "What people start can be started",
        arguments: [
            "scripts/run", "scripts/test", "scripts/demo", "scripts/package", "scripts/restore-drill", ".ci/run",
            "docs/examples/proof.sh",
        ])
    func executable(path: String) {
        #expect(FileManager.default.isExecutableFile(atPath: SourceTree.here.root.appending(path: path).path))
    }
}
