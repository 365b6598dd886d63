import Testing

@Suite("SQL files say what they are for and are listed")
struct StatementTests {
    /// The name SwiftPM gives a file in `PackageResources`: other characters, and a leading digit, become `_`.
    static func resourceName(_ fileName: String) -> String {
        let mangled = fileName.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" }
        return String(mangled.first?.isNumber == true ? ["_"] + mangled.dropFirst() : mangled)
    }

    /// The files whose resource none of the lists names.
    static func unnamed(_ fileNames: [String], in lists: [SwiftSource]) -> [String] {
        let words = Set(lists.flatMap { Word.all(in: $0.code) }.map(\.text))
        return fileNames.filter { !words.contains(resourceName($0)) }
    }

    @Test("The first line of every SQL file says what it is for")
    func firstLine() throws {
        let files = try SourceTree.here.files(in: "sql", ending: [".sql"])
        #expect(!files.isEmpty)
        for file in files {
            #expect(file.text.hasPrefix("-- "), "\(file.path) must begin with '-- ' and its purpose")
        }
    }

    @Test("The Swift files of sql/ name every SQL file", arguments: ["migrations", "queries", "reports"])
    func everyFileIsNamed(folder: String) throws {
        let lists = try SourceTree.here.files(in: "sql", ending: [".swift"]).map { SwiftSource($0.text) }
        let files = try SourceTree.here.files(in: "sql/" + folder, ending: [".sql"])
        #expect(!files.isEmpty)
        #expect(Self.unnamed(files.map(\.name), in: lists).isEmpty)
    }

    @Test("Each folder of queries/ has its own list, which names the files of that folder alone")
    func listsFollowFolders() throws {
        let files = try SourceTree.here.files(in: "sql/queries", ending: [".sql"])
        let folders = Dictionary(grouping: files) { String($0.path.split(separator: "/").dropLast().last ?? "") }
        let lists = try SourceTree.here.files(in: "sql", ending: [".swift"]).filter { $0.name.hasPrefix("Queries+") }
        #expect(Set(lists.map { Self.folderName($0.name) }) == Set(folders.keys))
        for list in lists {
            let named = Word.all(in: SwiftSource(list.text).code).map(\.text).filter { $0.hasSuffix("_sql") }
            let there = folders[Self.folderName(list.name), default: []].map { Self.resourceName($0.name) }
            #expect(named.sorted() == there.sorted(), "\(list.path)")
        }
    }

    /// The folder of `queries/` whose files a list names: `claim` of `Queries+Claim.swift`.
    static func folderName(_ listName: String) -> String {
        listName.dropFirst("Queries+".count).dropLast(".swift".count).lowercased()
    }

    @Test("A file that the list forgets is found")
    func forgottenFile() {
        let list = SwiftSource("let claim = PackageResources.claim_sql // settle_sql")
        #expect(Self.unnamed(["claim.sql", "settle.sql"], in: [list]) == ["settle.sql"])
        #expect(Self.resourceName("0001_ledger.sql") == "_001_ledger_sql")
    }
}
