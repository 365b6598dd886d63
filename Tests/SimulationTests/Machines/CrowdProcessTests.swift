import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import TestSupport
import Testing

/// A real server under the limit of files that a shell gives it.
@Suite("A server works under the limit of open files that a shell gives it", .serialized)
struct CrowdProcessTests {
    /// Starts a process that opens connections which say nothing, and waits until all are open.
    ///
    /// They are not of this process, because starting a process beside more than 1,350 open files may crash: Foundation
    /// lists them in a buffer and reads past its end (swift-corelibs-foundation 5472).
    private static func crowd(of count: Int, at port: Int) async throws -> Process {
        let script = """
            ulimit -S -n "$(ulimit -H -n)"
            for ((n = 0; n < $1; n++)); do exec {idle}<>/dev/tcp/127.0.0.1/$2 || exit; done
            echo open && exec sleep 120
            """
        let (process, said) = (Process(), Pipe())
        process.executableURL = URL(fileURLWithPath: "/bin/bash")
        process.arguments = ["-c", script, "bash", "\(count)", "\(port)"]
        process.standardOutput = said
        try process.runHearingSignals()
        let first = await onAThread { said.fileHandleForReading.availableData }
        try #require(first == Data("open\n".utf8), "not all connections are open")
        return process
    }

    /// Processor time that a process has used, in seconds (proc(5): fields 14 and 15, in hundredths).
    private static func processorSeconds(of process: Process) throws -> Double {
        let stat = try String(contentsOfFile: "/proc/\(process.processIdentifier)/stat", encoding: .utf8)
        let fields = try #require(stat.split(separator: ")").last).split(separator: " ")
        return (Double(fields[11]) ?? 0) / 100 + (Double(fields[12]) ?? 0) / 100
    }

    @Test("More than a thousand idle connections keep no caller out", .timeLimit(.minutes(2)))
    func idleConnections() async throws {
        try await PretendWorld.with(seed: 20_261_130, customers: 2, sandboxCustomers: 0, monthSeconds: 600) { world in
            // `-S` lowers the soft limit only, as a shell does.
            let server = try PerennialProcess(["serve"], in: world, limit: "-S -n 1024")
            defer { server.kill() }
            let address = try #require(try await server.address(), "\(server.said)")
            let port = try #require(URL(string: address)?.port)
            let crowd = try await Self.crowd(of: 1_500, at: port)
            defer { kill(crowd.processIdentifier, SIGKILL) }
            let before = try Self.processorSeconds(of: server.process)
            for _ in 0..<20 {
                var request = HTTPClientRequest(url: address + "/healthz")
                request.headers.add(name: "Connection", value: "close")
                let answer = try await HTTPClient.shared.execute(request, timeout: .seconds(10))
                #expect(answer.status == .ok)
                try await Task.sleep(for: .milliseconds(50))
            }
            #expect(try Self.processorSeconds(of: server.process) - before < 0.7, "it does not rest")
        }
    }

    @Test("What a shell gives is raised as far as the system lets it", .timeLimit(.minutes(1)))
    func raised() async throws {
        try await PretendWorld.with(seed: 20_261_131, customers: 2, sandboxCustomers: 0, monthSeconds: 600) { world in
            let server = try PerennialProcess(["serve"], in: world, limit: "-S -n 256")
            defer { server.kill() }
            _ = try #require(try await server.address(), "\(server.said)")
            let limits = try String(contentsOfFile: "/proc/\(server.process.processIdentifier)/limits", encoding: .utf8)
            let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max open files") })
            let numbers = line.split(separator: " ").compactMap { Int($0) }
            try #require(numbers.count == 2)
            #expect(numbers[0] == min(8_192, numbers[1]))
        }
    }
}
