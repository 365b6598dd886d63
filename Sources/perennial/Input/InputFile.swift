import Foundation

/// A file named on the command line; `-` is standard input.
struct InputFile: Sendable {
    let path: String

    init(_ path: String) {
        self.path = path
    }

    /// The name for messages.
    var name: String { path == "-" ? "standard input" : path }

    /// Opens the file. Throws one sentence when it cannot be opened.
    func open() throws -> FileHandle {
        guard path != "-" else { return .standardInput }
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
            throw Failure("\(path) does not exist; give the path of a file, or - for standard input.")
        }
        guard !isFolder.boolValue else { throw Failure("\(path) is a folder; give a file, or - for standard input.") }
        guard let handle = FileHandle(forReadingAtPath: path) else {
            throw Failure("\(path) cannot be opened; make it readable for this account.")
        }
        return handle
    }

    /// Reads the whole file; refuses one larger than `bytesMax`.
    func contents(bytesMax: Int) throws -> [UInt8] {
        let handle = try open()
        var bytes: [UInt8] = []
        while let chunk = try handle.read(upToCount: 1 << 16), !chunk.isEmpty {
            bytes += chunk
            guard bytes.count <= bytesMax else {
                throw Failure("\(name) has more than \(bytesMax) bytes; give the right file.")
            }
        }
        return bytes
    }

    /// The size of a regular file in bytes; nil for standard input, pipes and devices.
    var byteCount: Int? {
        guard path != "-", let attributes = try? FileManager.default.attributesOfItem(atPath: path),
            attributes[.type] as? FileAttributeType == .typeRegular
        else { return nil }
        return (attributes[.size] as? NSNumber)?.intValue
    }
}
