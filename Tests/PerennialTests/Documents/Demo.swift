import Foundation
import TestSupport
import Testing

/// `scripts/run` in a copy of the files that it needs, with the program of this build in place of a release build.
final class Demo {
    /// What a shell said, and the status with which it ended.
    struct Result {
        let status: Int32
        let said: String
    }

    private let folder: URL
    private let environment: [String: String]
    private var process = Process()

    /// A folder as a clone is, with the files that the reader of README.md brings.
    init(database address: String) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "demo-\(UUID())")
        let programs = folder.appending(path: "programs")
        try FileManager.default.createDirectory(at: programs, withIntermediateDirectories: true)
        // FileManager would keep the owner of the files, whom only root may set.
        let copies = ["scripts", "docs", "sql"].map { ComposeFile.root.appending(path: $0).path }
        let copy = try Process.run(URL(filePath: "/bin/cp"), arguments: ["-R"] + copies + [folder.path])
        copy.waitUntilExit()
        guard copy.terminationStatus == 0 else { throw TestSupportError("The files of the demo cannot be copied.") }
        let products = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().path
        let swift = programs.appending(path: "swift")
        try """
        #!/bin/sh
        case "$*" in *--show-bin-path*) echo '\(products)' ;; *--version*) echo 'Swift version 6.2' ;; esac
        """.write(to: swift, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: swift.path)
        try "0123456789abcdef0123456789abcdef\n".write(
            to: folder.appending(path: "secret.txt"), atomically: true, encoding: .utf8)
        let receipt = Data([0x30, 0x82, 0x01, 0x00] + [UInt8](repeating: 0x2A, count: 256)).base64EncodedString()
        try #"{"app": "com.example.app", "customer": "u1", "receipt": "\#(receipt)"}"#.write(
            to: folder.appending(path: "receipts.ndjson"), atomically: true, encoding: .utf8)
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        environment = [
            "PATH": "\(programs.path):\(path)", "HOME": folder.path, "DATABASE_URL": address, "no_proxy": "127.0.0.1",
        ]
    }

    /// Runs `scripts/run` until it serves.
    func start() async throws {
        process = try shellProcess(["scripts/run"], saying: "run.log")
        try process.runHearingSignals()
        while !said.contains("listening on http://") {
            try #require(process.isRunning, "scripts/run ended: \(said)")
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Ctrl-C, as a reader ends it.
    func stop() async throws {
        process.interrupt()
        let status = await process.ended()
        #expect(status == 0 && said.hasSuffix("Stopped; the next scripts/run continues from here.\n"), "\(said)")
    }

    /// Ends what runs, where a test fails.
    func kill() { process.terminate() }

    /// Removes the folder.
    func remove() throws { try FileManager.default.removeItem(at: folder) }

    /// All that the last `scripts/run` said.
    var said: String { (try? String(contentsOf: folder.appending(path: "run.log"), encoding: .utf8)) ?? "nothing" }

    /// What has to stay the same when it starts again: the key, the secrets and the beginning of the pretend lives.
    var kept: [String] {
        get throws {
            try ["api-key", "master-key", "shared-secret", "epoch"].map {
                try String(contentsOf: folder.appending(path: ".perennial/\($0)"), encoding: .utf8)
            }
        }
    }

    /// Runs blocks of a document in one shell, in the folder, except those with a reason not to.
    func run(_ blocks: [CommandBlock]) async throws -> Result {
        let commands = blocks.filter { $0.exclusion == nil }.map(\.text).joined(separator: "\n")
        guard !commands.isEmpty else { return Result(status: 0, said: "") }
        let simulator = try #require(said.firstMatch(of: /App Store simulator at http:\/\/(127\.0\.0\.1:[0-9]+)/)).1
        // What the package's perennialctl runs, with the settings of the demo.
        let replaced = commands.replacing("sudo perennialctl ", with: "perennial ")
        return try await shell(replaced.replacing("localhost:8090", with: simulator))
    }

    /// Runs commands with the settings of the demo.
    func shell(_ commands: String) async throws -> Result {
        let log = folder.appending(path: "shell.log")
        let shell = try shellProcess(
            ["-euo", "pipefail", "-c", ". .perennial/env\n\(commands)"], saying: "shell.log")
        try shell.runHearingSignals()
        let status = await shell.ended()
        return Result(status: status, said: try String(contentsOf: log, encoding: .utf8))
    }

    private func shellProcess(_ arguments: [String], saying file: String) throws -> Process {
        let log = folder.appending(path: file)
        try Data().write(to: log)
        let output = try FileHandle(forWritingTo: log)
        let process = Process()
        process.executableURL = URL(filePath: "/bin/bash")
        process.arguments = arguments
        process.currentDirectoryURL = folder
        process.environment = environment
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        return process
    }
}
