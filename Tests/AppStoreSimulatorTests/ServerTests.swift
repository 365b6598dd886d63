import Foundation
import NIOCore
import NIOPosix
import Testing

@testable import AppStoreSimulator

@Suite("The simulator serves HTTP as Apple does") struct ServerTests {
    private func store() -> Simulator {
        var options = SimulatorOptions(seed: 21)
        options.port = 0
        options.customers = 5
        options.bodyBytesMax = 4096
        return Simulator(options, clock: ManualClock().clock)
    }

    @Test("Answers have Apple's headers")
    func applesHeadersOverHTTP() async throws {
        let store = store()
        try await store.serving { port in
            let receipt = try #require(store.receipts().first?.receipt)
            let body = #"{"receipt-data":"\#(receipt)","password":"\#(store.sharedSecret)"}"#
            let answer = try await RawConnection.exchange(RawConnection.post("/verifyReceipt", body), port: port)
            #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(!answer.lowercased().contains("content-type"))
            #expect(answer.contains("x-apple-request-uuid: "))
            #expect(answer.contains(#"{"status":0,"environment":"Production""#))
            let truth = try await RawConnection.exchange(
                "GET /simulator/truth/c000000 HTTP/1.1\r\nHost: store\r\nConnection: close\r\n\r\n", port: port)
            #expect(truth.contains("Content-Type: application/json") && truth.contains(#""customer":"c000000""#))
        }
    }

    @Test("One connection serves two requests")
    func twoRequestsOnOneConnection() async throws {
        try await store().serving { port in
            let both =
                RawConnection.post("/verifyReceipt", "{}", keepAlive: true)
                + RawConnection.post("/verifyReceipt", "nonsense")
            let answers = try await RawConnection.exchange(both, port: port)
            #expect(answers.components(after: #"{"status":21002}"#)?.contains(#"{"status":21000}"#) == true)
        }
    }

    @Test("Faults are seen on the wire")
    func faultsOnTheWire() async throws {
        let store = store()
        try await store.serving { port in
            let post = RawConnection.post("/verifyReceipt", "{}")
            store.add(Fault(.truncate))
            let cut = try await RawConnection.exchange(post, port: port)
            #expect(cut.contains("Content-Length: 16\r\n") && cut.hasSuffix(#"{"status"#))
            store.clearFaults()
            var hang = Fault(.hang)
            hang.seconds = 0.05
            store.add(hang)
            #expect(try await RawConnection.exchange(post, port: port) == "")
            store.clearFaults()
            var slow = Fault(.slow)
            slow.seconds = 0.05
            store.add(slow)
            #expect(try await RawConnection.exchange(post, port: port).hasSuffix(#"{"status":21002}"#))
            #expect(store.callCount == 3)
        }
    }

    /// `SO_DEBUG` has the number of `TCP_NODELAY` at another level, and Linux allows it with a capability alone.
    @Test("An accepted connection sends at once, and needs no privilege for it")
    func optionsOfAcceptedSockets() async throws {
        try await store().serving { port in
            let client = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(host: "127.0.0.1", port: port).get()
            var accepted: [Int32] = []
            let end = ContinuousClock.now + .seconds(10)
            while accepted.isEmpty, client.isActive, ContinuousClock.now < end {
                try await Task.sleep(for: .milliseconds(10))
                accepted = AcceptedSocket.all(atPort: port)
            }
            #expect(accepted.count == 1, "the connection was closed")
            for socket in accepted {
                #expect(try AcceptedSocket.option(IPPROTO_TCP, TCP_NODELAY, of: socket) != 0)
                #expect(try AcceptedSocket.option(SOL_SOCKET, SO_DEBUG, of: socket) == 0)
            }
            client.close(promise: nil)
        }
    }

    @Test("A body that is too large is refused")
    func tooLargeABody() async throws {
        try await store().serving { port in
            let large = String(repeating: "x", count: 5000)
            let answer = try await RawConnection.exchange(RawConnection.post("/verifyReceipt", large), port: port)
            #expect(answer.hasPrefix("HTTP/1.1 413 "))
        }
    }

    @Test("A taken port is an error")
    func aTakenPortIsAnError() async throws {
        try await store().serving { port in
            var options = SimulatorOptions()
            options.port = port
            let second = Simulator(options)
            await #expect(throws: (any Error).self) { try await second.run() }
        }
    }
}

/// The sockets that this process accepted, as the system knows them.
private enum AcceptedSocket {
    private static let socketsMax: Int32 = 4_096

    /// Those whose own port is `port` and which have a caller.
    static func all(atPort port: Int) -> [Int32] {
        (0..<socketsMax).filter { socket in
            self.port(of: socket, by: getsockname) == port && self.port(of: socket, by: getpeername) != nil
        }
    }

    static func option(_ level: some BinaryInteger, _ name: Int32, of socket: Int32) throws -> Int32 {
        var (value, length) = (Int32(-1), socklen_t(MemoryLayout<Int32>.size))
        try #require(getsockopt(socket, Int32(level), name, &value, &length) == 0)
        return value
    }

    private static func port(
        of socket: Int32, by ask: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> Int? {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isKnown = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { ask(socket, $0, &length) == 0 }
        }
        guard isKnown, address.sin_family == sa_family_t(AF_INET) else { return nil }
        return Int(UInt16(bigEndian: address.sin_port))
    }
}

extension String {
    /// What follows the first occurrence of a text; nil when it does not occur.
    fileprivate func components(after text: String) -> Substring? {
        range(of: text).map { self[$0.upperBound...] }
    }
}
