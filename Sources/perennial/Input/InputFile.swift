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

/// A file with one secret: other users could read a secret on the command line.
struct SecretFile: Sendable {
    /// The most bytes of a secret; Apple's have 32.
    static let bytesMax = 4_096

    let file: InputFile

    /// Returns the secret without trailing newlines. Throws when it is then empty.
    func secret() throws -> String {
        let bytes = try file.contents(bytesMax: Self.bytesMax)
        return try Self.secret(in: bytes, name: file.name)
    }

    static func secret(in bytes: [UInt8], name: String) throws -> String {
        guard var text = String(validating: bytes, as: UTF8.self) else {
            throw Failure("\(name) holds no text; write the shared secret of App Store Connect into it.")
        }
        while text.last?.isNewline == true { text.removeLast() }
        guard !text.isEmpty else {
            throw Failure("\(name) is empty; write the shared secret of App Store Connect into it.")
        }
        guard !text.contains(where: \.isNewline) else {
            throw Failure("\(name) has more than one line; write only the secret into it.")
        }
        return text
    }
}

/// A file with one receipt: base64 as an app sends it, or a device's receipt file unchanged.
struct ReceiptFile {
    /// The most bytes of a receipt's file.
    static let bytesMax = 12 << 20

    let file: InputFile

    /// Returns the receipt as text. Bytes that are not text are the receipt itself, and are encoded.
    func receipt() throws -> String {
        Self.receipt(in: try file.contents(bytesMax: Self.bytesMax))
    }

    static func receipt(in bytes: [UInt8]) -> String {
        String(validating: bytes, as: UTF8.self) ?? Data(bytes).base64EncodedString()
    }
}
