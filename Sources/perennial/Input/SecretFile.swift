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
