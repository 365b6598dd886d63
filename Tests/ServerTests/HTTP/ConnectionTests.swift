import Hummingbird
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Server

/// Each test has a server of its own on it, and writes nothing.
private let servedLedger = OncePerSuite(ServedLedger.with)

@Suite("Connections are limited, and silent ones make room for callers", servedLedger) struct ConnectionTests {
    private static let alive = "GET /healthz HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"

    private func connect(_ port: Int, from address: String = "127.0.0.1", saying text: String = "") async throws
        -> any Channel
    {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(to: try SocketAddress(ipAddress: address, port: 0))
            .connect(host: "127.0.0.1", port: port).get()
        if !text.isEmpty { try await channel.writeAndFlush(ByteBuffer(string: text)) }
        return channel
    }

    private func limits(connections: Int) -> ServerLimits {
        var limits = ServerLimits()
        limits.connectionsMax = connections
        return limits
    }

    private func wait(_ what: String, until isSo: () -> Bool) async throws {
        let end = ContinuousClock.now + .seconds(30)
        while !isSo() {
            try #require(ContinuousClock.now < end, "\(what)")
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    @Test("Silent connections make room for callers, which the log says when it begins and when it ends")
    func silentOnesMakeRoom() async throws {
        let journal = Journal()
        try await Serving.onPort(of: servedLedger, limits(connections: 64), logger: journal.logger) { _, port in
            let first = try await connect(port)
            var silent: [any Channel] = []
            for number in 0..<100 {
                silent.append(try await connect(port, saying: number.isMultiple(of: 2) ? "GET / HT" : ""))
                let answer = try await RawExchange.send(Self.alive, port: port)
                #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(number): \(answer)")
            }
            // The one that was silent longest has gone, the newest is still there.
            try await first.closeFuture.get()
            #expect(silent.last?.isActive == true)
            #expect(journal.lines.count { $0.hasPrefix("warning one address has its share") } == 1)
            for channel in silent { channel.close(promise: nil) }
            try await wait("the end is not logged") {
                journal.lines.contains { $0.contains("room for connections again") }
            }
            let reported = journal.lines.filter { $0.contains("room for connections again") }
            #expect(
                reported.count == 1 && reported[0].contains(#""refused": 0"#) && reported[0].contains("127.0.0.1"),
                "\(reported)")
        }
    }

    @Test("One address fills its share, not the server")
    func oneAddress() async throws {
        try await Serving.onPort(of: servedLedger, limits(connections: 16)) { _, port in
            let others = try await (0..<8).asyncMap { _ in try await connect(port, from: "127.0.0.2") }
            for _ in 0..<40 { _ = try await connect(port) }
            // When all are taken, an address that comes anew still finds room: one of the others' is the oldest.
            let third = try await connect(port, from: "127.0.0.3", saying: Self.alive)
            try await third.closeFuture.get()
            #expect(others.count { $0.isActive } >= 7)
        }
    }

    @Test("Where all wait for their answers a new connection is refused, and none of them is ended")
    func allAreBusy() async throws {
        try await Serving.onPort(of: servedLedger, limits(connections: 8)) { served, port in
            // The server asked for the body, so that the request has begun.
            let ask =
                "POST /v1/apps/com.example.app/entitlements:batch HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n"
                + "Expect: 100-continue\r\nAuthorization: Bearer \(served.secret)\r\n\r\n"
            let busy = try await (0..<4).asyncMap { _ in try await waiting(port, saying: ask) }
            let answer = try await RawExchange.send("", port: port)
            #expect(answer.hasPrefix("HTTP/1.1 503 ") && answer.contains("Connection: close\r\n"), "\(answer)")
            #expect(busy.allSatisfy { $0.isActive })
            // Once one of them has its answer it is silent, and makes room.
            try await busy[0].writeAndFlush(ByteBuffer(string: "{}"))
            var later = ""
            while !later.hasPrefix("HTTP/1.1 200 ") { later = try await RawExchange.send(Self.alive, port: port) }
            try await busy[0].closeFuture.get()
            #expect(busy.dropFirst().allSatisfy { $0.isActive })
            for channel in busy { channel.close(promise: nil) }
        }
    }

    /// A connection on which the server has said something.
    private func waiting(_ port: Int, saying text: String) async throws -> any Channel {
        let heard = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: Void.self)
        let connecting = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Hearing(heard))
                }
            }
            .connect(host: "127.0.0.1", port: port)
        connecting.cascadeFailure(to: heard)
        let channel = try await connecting.get()
        try await channel.writeAndFlush(ByteBuffer(string: text))
        try await heard.futureResult.get()
        return channel
    }

    private final class Hearing: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let heard: EventLoopPromise<Void>

        init(_ heard: EventLoopPromise<Void>) { self.heard = heard }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { heard.succeed() }
        func channelInactive(context: ChannelHandlerContext) { heard.fail(ChannelError.eof) }
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
        #expect(SourceAddress("here") == nil && SourceAddress(nil).description == "unknown")
    }
}

extension Range<Int> {
    fileprivate func asyncMap<Value>(_ transform: (Int) async throws -> Value) async throws -> [Value] {
        var values: [Value] = []
        for element in self { values.append(try await transform(element)) }
        return values
    }
}
