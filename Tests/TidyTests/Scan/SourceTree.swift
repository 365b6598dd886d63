import Foundation

/// The package as it lies on disk, seen from this file's own place.
struct SourceTree {
    /// The package's root folder.
    let root: URL

    /// The tree this file was compiled from.
    static let here = SourceTree(
        root: URL(filePath: #filePath).resolvingSymlinksInPath()
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent())

    /// One text file, named by its path from the root.
    struct File {
        let path: String
        let text: String

        /// The last component of the path.
        var name: String { String(path.split(separator: "/").last ?? "") }

        /// How many lines the text has; a closing newline begins no further line.
        var lineCount: Int {
            text.utf8.count { $0 == newline } + (text.isEmpty || text.utf8.last == newline ? 0 : 1)
        }
    }

    /// Every text file below `folder` whose name ends in one of `endings` ("" is any), in order of path.
    func files(in folder: String, ending endings: [String]) throws -> [File] {
        try paths(in: folder)
            .filter { path in endings.contains { path.hasSuffix($0) } && !path.hasSuffix(".png") }
            .map { File(path: $0, text: try String(contentsOf: root.appending(path: $0), encoding: .utf8)) }
    }

    /// One file of the root, or nil when it is not there.
    func file(_ path: String) throws -> File? {
        guard exists(path) else { return nil }
        return File(path: path, text: try String(contentsOf: root.appending(path: path), encoding: .utf8))
    }

    /// Whether a file or folder lies at this path from the root.
    func exists(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: root.appending(path: path).path)
    }

    /// All Swift files of the package that people write: rooms, tests, SQL and the manifest.
    func swiftFiles() throws -> [File] {
        try ["Sources", "Tests", "sql"].flatMap { try files(in: $0, ending: [".swift"]) }
            .filter { !$0.path.contains("/Generated/") }
            + [try file("Package.swift")].compactMap { $0 }
    }

    /// The same, taken apart once for all rules.
    static func swiftSources() throws -> [(file: File, source: SwiftSource)] { try takenApart.get() }

    private static let takenApart = Result {
        try here.swiftFiles().map { (file: $0, source: SwiftSource($0.text)) }
    }

    private func paths(in folder: String) throws -> [String] {
        guard exists(folder) else { return [] }
        let names = try FileManager.default.contentsOfDirectory(atPath: root.appending(path: folder).path).sorted()
        return try names.filter { !$0.hasPrefix(".") }.flatMap { name in
            let path = folder + "/" + name
            var isFolder: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: root.appending(path: path).path, isDirectory: &isFolder)
            return isFolder.boolValue ? try paths(in: path) : [path]
        }
    }
}

/// The byte that ends a line.
let newline = UInt8(ascii: "\n")
