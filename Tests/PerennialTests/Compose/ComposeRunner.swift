import Foundation
import TestSupport
import Testing

/// Starts services of a compose file as processes of this machine.
final class ComposeRunner {
    let file: ComposeFile
    private let folder: String
    private let further: [String: String]
    private(set) var running: [String: Process] = [:]

    /// Services that live in `folder`, with these settings of the image besides their own.
    init(file: ComposeFile, folder: String, further: [String: String]) {
        self.file = file
        self.folder = folder
        self.further = further
    }

    /// Starts all in order; each as its dependants wait for it.
    func up(withoutStarting given: Set<String>) async throws {
        for name in file.inOrder {
            if given.contains(name) {
                try await becomeWell(name)
            } else if try service(name).isRestarted {
                try await start(name)
            } else {
                try await complete(name)
            }
        }
    }

    /// Runs a step that ends by itself.
    func complete(_ name: String) async throws {
        let process = try process(name, try service(name).arguments)
        try process.runHearingSignals()
        while process.isRunning { try await Task.sleep(for: .milliseconds(20)) }
        try #require(process.terminationStatus == 0, "\(name) ended with \(process.terminationStatus): \(said)")
    }

    /// Starts a service and waits until it is well.
    func start(_ name: String) async throws {
        let process = try process(name, try service(name).arguments)
        try process.runHearingSignals()
        running[name] = process
        try await becomeWell(name)
    }

    /// Runs a command as inside a service's container; its status.
    func run(_ arguments: [String], in service: String) async throws -> Int32 {
        let process = try process("\(service)-command", arguments, of: service)
        try process.runHearingSignals()
        return await process.ended()
    }

    /// SIGTERM, as an engine sends it; the status with which it ended, within its grace period.
    func stop(_ name: String) async throws -> Int32 {
        let found = running.removeValue(forKey: name)
        let process = try #require(found)
        process.terminate()
        let end = ContinuousClock.now + .seconds(try service(name).stopGraceSeconds)
        while process.isRunning {
            try #require(ContinuousClock.now < end, "\(name) did not stop in time")
            try await Task.sleep(for: .milliseconds(20))
        }
        return process.terminationStatus
    }

    /// Ends what runs still.
    func endAll() {
        for process in running.values {
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
        }
    }

    /// All that services said.
    var said: String {
        file.inOrder.map { "\($0): \((try? String(contentsOfFile: log(of: $0), encoding: .utf8)) ?? "nothing")" }
            .joined(separator: "\n")
    }

    /// Runs the health check as often as the file allows, a quarter of a second apart; without one it is well at once.
    private func becomeWell(_ name: String) async throws {
        guard let check = try service(name).healthArguments else { return }
        for _ in 0..<(4 * (try service(name).healthRetries)) {
            let process = try process("\(name)-health", check, of: name)
            try process.runHearingSignals()
            while process.isRunning { try await Task.sleep(for: .milliseconds(20)) }
            if process.terminationStatus == 0 { return }
            try await Task.sleep(for: .milliseconds(250))
        }
        try #require(Bool(false), "\(name) never became well: \(said)")
    }

    private func service(_ name: String) throws -> ComposeService { try #require(file.services[name], "\(name)") }

    private func log(of name: String) -> String { "\(folder)/\(name).log" }

    private func process(_ name: String, _ arguments: [String], of service: String? = nil) throws -> Process {
        let log = log(of: name)
        if !FileManager.default.fileExists(atPath: log) { try Data().write(to: URL(filePath: log)) }
        let output = try #require(FileHandle(forWritingAtPath: log))
        try output.seekToEnd()
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = arguments
        process.currentDirectoryURL = URL(filePath: folder)
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        let products = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().path
        let path = "\(products):\(ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin")"
        process.environment = try self.service(service ?? name).environment.merging(further) { own, _ in own }
            .merging(["PATH": path, "HOME": folder]) { own, _ in own }
        return process
    }
}
