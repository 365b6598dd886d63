import Foundation

/// Captured and synthetic answers beside the package, when they are there.
enum Fixtures {
    /// The folder, or nil where the package stands alone; says so.
    static let folder: URL? = {
        var root = URL(filePath: #filePath)
        for _ in 0..<3 { root.deleteLastPathComponent() }
        let folder = root.appending(path: "../shared/fixtures").standardizedFileURL
        guard FileManager.default.fileExists(atPath: folder.path) else {
            print("no fixtures at ../shared/fixtures: these tests check nothing here")
            return nil
        }
        return folder.resolvingSymlinksInPath()
    }()

    /// The files whose name ends in one of `endings`, by path below the folder.
    static func files(ending endings: [String]) -> [(name: String, body: [UInt8])] {
        guard let folder, let walk = FileManager.default.enumerator(atPath: folder.path) else { return [] }
        let names = walk.compactMap { $0 as? String }.filter { name in endings.contains { name.hasSuffix($0) } }
        return names.sorted().compactMap { name in
            (try? Data(contentsOf: folder.appending(path: name))).map { (name, [UInt8]($0)) }
        }
    }

    /// One file; nil when the folder is not there.
    static func body(_ name: String) throws -> [UInt8]? {
        guard let folder else { return nil }
        return [UInt8](try Data(contentsOf: folder.appending(path: name)))
    }
}
