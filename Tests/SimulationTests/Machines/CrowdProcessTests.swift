import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Testing

/// A real server under the limit of files that a shell gives it.
@Suite("A server works under the limit of open files that a shell gives it", .serialized)
struct CrowdProcessTests {
    /// Opens connections that say nothing.
    private static func idle(_ count: Int, to port: UInt16) throws -> [Int32] {
        try (0..<count).map { _ in
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = inet_addr("127.0.0.1")
            let connected = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            try #require(descriptor >= 0 && connected == 0, "errno \(errno)")
            return descriptor
        }
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
            let port = try #require(URL(string: address)?.port.map(UInt16.init))
            let idle = try Self.idle(1_500, to: port)
            let before = try Self.processorSeconds(of: server.process)
            for _ in 0..<20 {
                var request = HTTPClientRequest(url: address + "/healthz")
                request.headers.add(name: "Connection", value: "close")
                let answer = try await HTTPClient.shared.execute(request, timeout: .seconds(10))
                #expect(answer.status == .ok)
                try await Task.sleep(for: .milliseconds(50))
            }
            #expect(try Self.processorSeconds(of: server.process) - before < 0.7, "it does not rest")
            for descriptor in idle { close(descriptor) }
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
