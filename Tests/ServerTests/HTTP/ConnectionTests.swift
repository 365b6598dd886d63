import Hummingbird
import NIOCore
import NIOPosix
import TestSupport
import Testing
import Tracking

@testable import Server

/// Each test has a server of its own on it, and writes nothing.
private let servedLedger = OncePerSuite(ServedLedger.with)

@Suite("Connections are limited, and silent ones end", servedLedger) struct ConnectionTests {
    private static let alive = "GET /healthz HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"

    private func connect(_ port: Int, saying text: String) async throws {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port).get()
        try await channel.writeAndFlush(ByteBuffer(string: text))
    }

    @Test("At the limit a new connection waits until another one ends, and silence ends one")
    func full() async throws {
        var limits = ServerLimits()
        (limits.connectionsMax, limits.idleSeconds) = (8, 2)
        try await Serving.onPort(of: servedLedger, limits) { _, port in
            for _ in 0..<20 { try await connect(port, saying: "GET / HT") }
            let answer = try await RawExchange.send(Self.alive, port: port)
            #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)")
        }
    }

    @Test(
        "Files are left to Apple and PostgreSQL whatever the limit is",
        arguments: [(256, 56), (1_024, 632), (8_192, 4_096), (1_048_576, 4_096), (64, 16)])
    func files(_ count: Int, _ connections: Int) {
        let files = OpenFiles(count: count, processors: 2)
        #expect(files.connectionsMax == connections)
        #expect(count < 256 || connections + files.callsMax + 64 <= count)
    }

    @Test("A network of IPv6 counts as one address")
    func addresses() {
        #expect(SourceAddress("::ffff:192.0.2.1") == SourceAddress("192.0.2.1"))
        #expect(SourceAddress("2001:db8::1") == SourceAddress("2001:db8::ffff:1"))
        #expect(SourceAddress("2001:db8::1") != SourceAddress("2001:db8:0:1::1"))
        #expect(SourceAddress("::1")?.isLoopback == true && SourceAddress("::2")?.isLoopback == false)
        #expect(SourceAddress("here") == nil && SourceAddress(ip: []).description == "unknown")
    }
}

extension SourceAddress {
    /// Reads an address from text; nil where it is none.
    init?(_ text: String) {
        guard let address = IPAddress(text) else { return nil }
        self.init(ip: address.unmapped.bytes)
    }
}
