import Foundation

/// A folder of a server that tests run. As root the server runs under the account `postgres`, for such servers refuse root.
struct ServerFolder: Sendable {
    let path: String
    private let account: String?

    /// Makes the folder in `PERENNIAL_TEST_FOLDER`, or in the temporary folder. A socket's path has room for 107 bytes, so
    /// its name is short.
    init(prefix: String) throws {
        account = getuid() == 0 ? "postgres" : nil
        let parent =
            ProcessInfo.processInfo.environment["PERENNIAL_TEST_FOLDER"].map { URL(fileURLWithPath: $0) }
            ?? FileManager.default.temporaryDirectory
        path = parent.appendingPathComponent("\(prefix)\(UInt32.random(in: 0 ... .max))").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        var attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o700]
        if let account { attributes[.ownerAccountName] = account }
        try FileManager.default.setAttributes(attributes, ofItemAtPath: path)
    }

    /// A program of the server's account, silent, not started yet.
    func process(_ program: String, _ arguments: [String]) -> Process {
        let process = Process()
        let account = account.map { ["setpriv", "--reuid=\($0)", "--regid=\($0)", "--init-groups"] }
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = (account ?? []) + [program] + arguments
        process.currentDirectoryURL = URL(fileURLWithPath: path)
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        return process
    }

    /// A file that only the server's account may read; answers where it is.
    func write(_ text: String, to name: String) throws -> String {
        let file = "\(path)/\(name)"
        try text.write(toFile: file, atomically: false, encoding: .utf8)
        var attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
        if let account { attributes[.ownerAccountName] = account }
        try FileManager.default.setAttributes(attributes, ofItemAtPath: file)
        return file
    }

    /// Runs a program to its end, which must be a good one.
    func run(_ program: String, _ arguments: [String]) async throws {
        let process = process(program, arguments)
        try process.run()
        while process.isRunning { try await Task.sleep(for: .milliseconds(5)) }
        guard process.terminationStatus == 0 else {
            throw TestSupportError("\(program) in \(path) ended with status \(process.terminationStatus).")
        }
    }

    func remove() throws {
        try FileManager.default.removeItem(atPath: path)
    }
}
