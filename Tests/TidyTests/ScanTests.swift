import Testing

/// The scanners against small bad examples: a rule that finds nothing proves nothing.
@Suite("The scanners find small bad examples")
struct ScanTests {
    @Test("Code and comments are separated")
    func apart() {
        let source = SwiftSource(
            #"""
            let a = "// no comment \(call("x { y")) \" }" // a "comment"
            /* outer /* inner { */ still */ let b = #"raw \( " { "# // end
            """#)
        let words = Word.all(in: source.code).map(\.text)
        #expect(words == ["let", "a", "=", "(", "call", "(", ")", ")", "let", "b", "="])
        let comments = String(decoding: source.comments, as: UTF8.self)
        #expect(comments.contains("// a \"comment\""))
        #expect(comments.contains("/* outer /* inner { */ still */"))
        #expect(!comments.contains("no comment"))
    }

    @Test("A literal of several lines is no code")
    func severalLines() {
        let source = SwiftSource("let a = \"\"\"\n  import Hidden \"quoted\"\n  \"\"\"\nimport Shown")
        #expect(importedModules(in: source) == ["Shown"])
        #expect(Word.all(in: source.code).last == Word(text: "Shown", line: 4))
    }

    @Test("Imports are found in all their forms")
    func imports() {
        let source = SwiftSource(
            """
            import Foundation
            @preconcurrency import NIOCore
            internal import struct Crypto.SHA256
            // import Commented
            let text = "import Quoted"
            #if canImport(Glibc)
            import Glibc
            #endif
            """)
        #expect(importedModules(in: source) == ["Foundation", "NIOCore", "Crypto", "Glibc"])
    }

    @Test("Functions are measured from name to brace")
    func functions() {
        let source = SwiftSource(
            """
            protocol Shape {
                func area() -> Int
                init(side: Int)
                var name: String { get }
            }
            struct Square {
                init(side: Int = { 1 }()) {
                    self.init()
                }
                func area(_ body: () -> Void) async throws -> @Sendable () -> Void
                {
                    if true { body() }
                    return { }
                }
                subscript(index: Int) -> Int { 0 }
            }
            """)
        let found = FunctionLength.all(in: source)
        #expect(found.map(\.name) == ["init", "area", "subscript"])
        #expect(found.map(\.lineCount) == [3, 5, 1])
        let long = "func long() {\n" + String(repeating: "    work()\n", count: 58) + "}"
        #expect(FunctionLength.all(in: SwiftSource(long)) == [FunctionLength(name: "long", line: 1, lineCount: 60)])
    }

    @Test(
        "Names that say nothing are found",
        arguments: [
            ("ReceiptManager", true), ("HTTPUtils", true), ("CoreTypes", true), ("test_helpers", true),
            ("Score", false), ("Commons", false), ("NIOCoreLoop", true), ("Encore", false),
        ])
    func names(name: String, isEmpty: Bool) {
        #expect(isEmptyName(name) == isEmpty, "\(wordsOfName(name))")
    }

    @Test("Declared types are ours, extended ones are not")
    func types() {
        let source = SwiftSource(
            "extension FileManager {}\nstruct TimeManager {}\nclass func make() {}\nimport class A.B")
        #expect(declaredTypes(in: source) == ["TimeManager"])
    }

    @Test("Calls that end the process are found")
    func processEnds() {
        let source = SwiftSource("let a = try! f()\nlet b = try? g()\nfatalError(\"never\")\n// fatalError()")
        #expect(processEndingCalls(in: source) == ["line 1: a forced try", "line 3: a fatal error"])
        let clients = SwiftSource(
            "let client = HTTPClient(of: group)\nstatic let client = HTTPClient(of: group)\nwithHTTPClient(g)\nwithHTTPClient(eventLoopGroup: loop)"
        )
        #expect(
            processEndingCalls(in: clients) == [
                "line 1: an HTTP client that a throw leaves running",
                "line 3: an HTTP client that may have several event loops",
            ])
    }

    @Test("Promises, issue numbers and home folders are found")
    func traces() {
        #expect(unfinishedLines(in: "fine\n// TO" + "DO: later\n").count == 1)
        #expect(issueNumberLines(in: "see #12\n(#7)\nmonza#29\npage.md#12\n# Title").count == 2)
        let home = "/ho" + "me/"
        #expect(homeFolderLines(in: "cd \(home)someone\n/etc\(home)x\nhttps://example.com\(home)y").count == 1)
    }

    @Test("Links are found outside code only")
    func links() {
        let text = "[a](one.md#x \"title\") [b](https://example.com) `[c](two.md)` [d](#here)\n```\n[e](three.md)\n```"
        #expect(linkedPaths(in: text) == ["one.md"])
        #expect(resolvedPath("../sql/a.sql", from: "docs/page.md") == "sql/a.sql")
        #expect(resolvedPath("../../a", from: "docs/page.md") == nil)
    }
}
