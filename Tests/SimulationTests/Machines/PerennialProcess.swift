import Foundation
import TestSupport

/// The real executable as a process of its own; what it says is kept in a file.
struct PerennialProcess {
    let process = Process()
    private let file: URL

    /// Starts `perennial` with these arguments in a world, on another address of the database where one is given.
    /// - Parameter limit: What the shell's `ulimit` is given before, such as `-n 1024`.
    init(_ arguments: [String], in world: PretendWorld, further: [String: String] = [:], limit: String? = nil) throws {
        let environment = [
            "DATABASE_URL": world.connectionString,
            "PERENNIAL_MASTER_KEY": Data(PretendWorld.masterKey).base64EncodedString(),
            "PERENNIAL_APPSTORE_URL": "http://127.0.0.1:\(world.port)/verifyReceipt",
            "PERENNIAL_APPSTORE_SANDBOX_URL": "http://127.0.0.1:\(world.port)/sandbox/verifyReceipt",
            "PERENNIAL_APPSTORE_SERVER_URL": "http://127.0.0.1:\(world.port)",
            "PERENNIAL_APPSTORE_SERVER_SANDBOX_URL": "http://127.0.0.1:\(world.port)/sandbox",
            "PERENNIAL_POLL_SPEEDUP": "\(world.speedup)", "PERENNIAL_LEASE_SECONDS": "10", "PERENNIAL_HTTP_PORT": "0",
        ]
        try self.init(arguments, environment: environment.merging(further) { _, given in given }, limit: limit)
    }

    /// Starts `perennial` with these arguments in this environment.
    /// - Parameter redirection: Another place for standard output, as a shell spells it, such as `>&-`.
    init(
        _ arguments: [String], environment: [String: String], limit: String? = nil, redirection: String? = nil
    ) throws {
        file = FileManager.default.temporaryDirectory.appending(path: "said-\(UUID())")
        try Data().write(to: file)
        let output = try FileHandle(forWritingTo: file)
        let program = PretendWorld.productsFolder.appendingPathComponent("perennial")
        let isPlain = limit == nil && redirection == nil
        process.executableURL = isPlain ? program : URL(fileURLWithPath: "/bin/sh")
        let limiting = limit.map { "ulimit \($0) && " } ?? ""
        let script = "\(limiting)exec \"$0\" \"$@\" \(redirection ?? "")"
        process.arguments = (isPlain ? [] : ["-c", script, program.path]) + arguments
        process.standardOutput = output
        process.standardError = output
        process.environment = environment
        try process.runHearingSignals()
    }

    /// All that it has said so far, or why that cannot be read.
    var said: String {
        do {
            return try String(contentsOf: file, encoding: .utf8)
        } catch {
            return "\(error)"
        }
    }

    /// Waits for its end; answers its status.
    func end() async -> Int32 { await process.ended() }

    /// SIGTERM, and waits for its end; answers its status.
    func stop() async -> Int32 {
        process.terminate()
        return await end()
    }

    /// SIGKILL, where a test ends early.
    func kill() { Foundation.kill(process.processIdentifier, SIGKILL) }

    /// Where a server listens, once it does; nil when it ended before.
    func address() async throws -> String? {
        while process.isRunning {
            if let found = said.firstMatch(of: /listen(?:s|ing) on (https?:\/\/127\.0\.0\.1:[0-9]+)/) {
                return String(found.1)
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        return nil
    }

    /// Removes what it said.
    func forget() throws { try FileManager.default.removeItem(at: file) }
}
