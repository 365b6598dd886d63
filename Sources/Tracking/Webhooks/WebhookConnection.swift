import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Synchronization

/// What a receiver answered: its status as soon as that is enough, else with its headers.
struct WebhookAnswer: Sendable {
    let status: Int
    var headers: HTTPHeaders?

    /// Whether nothing that follows changes what it says.
    var isEnough: Bool { headers != nil || 200..<300 ~= status || status == 410 }
}

/// Why no answer came.
enum WebhookCallError: String, Error {
    case late = "It did not answer within 15 seconds."
    case closed = "It closed the connection without an answer."
    case unknownHost = "No connection was made; see that the host of the URL is known."
}

/// The connections to receivers. Each address is judged after the name is looked up, and again on the connected peer,
/// before a byte leaves. A connection whose answer was read to its end serves again for a while.
final class WebhookConnections: Sendable {
    private static let connectTimeout = TimeAmount.seconds(5)
    private static let idleTimeout = TimeAmount.seconds(30)

    private let tls: NIOSSLContext
    private let judge: @Sendable (IPAddress, _ isSecure: Bool) -> String?
    private let idle = Mutex<[String: [any Channel]]>([:])

    /// The places whose connections are remembered.
    var places: [String] { idle.withLock { Array($0.keys) } }

    init(tls: NIOSSLContext, judge: @escaping @Sendable (IPAddress, _ isSecure: Bool) -> String?) {
        (self.tls, self.judge) = (tls, judge)
    }

    /// Sends a body; throws where no status came in time.
    func post(
        _ body: [UInt8], _ headers: HTTPHeaders, to address: WebhookAddress, within time: TimeAmount
    ) async throws -> WebhookAnswer {
        let deadline = NIODeadline.now() + time
        if let channel = idle.withLock({ $0[address.place]?.popLast() }) {
            // It may have been closed meanwhile: then another one is made.
            do {
                return try await exchange(body, headers, address, on: channel.eventLoop, by: deadline) {
                    $0.makeSucceededFuture(channel)
                }
            } catch WebhookCallError.closed { try Task.checkCancellation() }
        }
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        return try await exchange(body, headers, address, on: loop, by: deadline) { [self] in
            connect(to: address, on: $0)
        }
    }

    private func exchange(
        _ body: [UInt8], _ headers: HTTPHeaders, _ address: WebhookAddress, on loop: any EventLoop,
        by deadline: NIODeadline, over connect: @escaping @Sendable (any EventLoop) -> EventLoopFuture<any Channel>
    ) async throws -> WebhookAnswer {
        let head = HTTPRequestHead(version: .http1_1, method: .POST, uri: address.target, headers: headers)
        let answer = loop.makePromise(of: WebhookAnswer.self)
        // In one turn of the loop: the call is there before a handshake can fail, whose failure is then the call's.
        loop.execute { [self] in
            let connection = connect(loop)
            connection.cascadeFailure(to: answer)
            connection.whenSuccess { [self] channel in
                let timer = loop.scheduleTask(deadline: deadline) {
                    channel.pipeline.fireErrorCaught(WebhookCallError.late)
                }
                let turn = WebhookTurn(head: head, body: ByteBuffer(bytes: body), answer: answer) { [self] isOver in
                    timer.cancel()
                    guard isOver else { return channel.close(promise: nil) }
                    idle.withLock { $0[address.place, default: []].append(channel) }
                }
                answer.futureResult.whenFailure { _ in channel.close(promise: nil) }
                channel.writeAndFlush(turn).whenFailure {
                    answer.fail($0 is ChannelError ? WebhookCallError.closed : $0)
                }
            }
        }
        return try await withTaskCancellationHandler {
            try await answer.futureResult.get()
        } onCancel: {
            answer.fail(CancellationError())
        }
    }

    private func connect(to address: WebhookAddress, on loop: any EventLoop) -> EventLoopFuture<any Channel> {
        ClientBootstrap(group: loop)
            .connectTimeout(Self.connectTimeout)
            .resolver(JudgedAddresses(addresses: loop.makePromise()) { [judge] in judge($0, address.isSecure) })
            .connect(host: address.host, port: address.port)
            .flatMapThrowing { [self] channel in
                let peer = channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
                if let refusal = peer.map({ judge($0, address.isSecure) }) ?? "leads to no address." {
                    channel.close(promise: nil)
                    throw WebhookAddress.refused(refusal)
                }
                let pipeline = channel.pipeline.syncOperations
                if address.isSecure {
                    let name = IPAddress(address.host) == nil ? address.host : nil
                    try pipeline.addHandler(NIOSSLClientHandler(context: tls, serverHostname: name))
                }
                try pipeline.addHandler(WebhookStatusGate())
                try pipeline.addHTTPClientHandlers()
                try pipeline.addHandlers([IdleStateHandler(allTimeout: Self.idleTimeout), WebhookExchange()])
                channel.closeFuture.whenComplete { [self] _ in forget(channel, at: address.place) }
                return channel
            }
    }

    /// Forgets a closed connection: no later call may lead to its place and find it.
    private func forget(_ channel: any Channel, at place: String) {
        idle.withLock { idle in
            idle[place]?.removeAll { $0 === channel }
            if idle[place]?.isEmpty == true { idle[place] = nil }
        }
    }
}

/// Looks a host up. One address that a webhook may not reach refuses them all.
private struct JudgedAddresses: Resolver, Sendable {
    let addresses: EventLoopPromise<[SocketAddress]>
    let judge: @Sendable (IPAddress) -> String?

    /// All addresses come with the other query.
    func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        addresses.futureResult.map { _ in [] }
    }

    func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        // A lookup may take long: on the queue of all it delays no other one.
        DispatchQueue.global().async { [self] in
            do {
                let texts = Self.look(up: host)
                let found = texts.compactMap { text in IPAddress(String(text.prefix { $0 != "%" })) }
                guard !found.isEmpty, found.count == texts.count else { throw WebhookCallError.unknownHost }
                if let refusal = found.compactMap(judge).first { throw WebhookAddress.refused(refusal) }
                addresses.succeed(try texts.map { try SocketAddress(ipAddress: $0, port: port) })
            } catch { addresses.fail(error) }
        }
        return addresses.futureResult
    }

    func cancelQueries() {}

    /// The addresses of a host as text, each once.
    private static func look(up host: String) -> [String] {
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, nil, nil, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        var found: [String] = []
        for entry in sequence(first: list, next: { $0?.pointee.ai_next }) {
            guard let entry = entry?.pointee else { break }
            var text = [CChar](repeating: 0, count: 256)
            guard getnameinfo(entry.ai_addr, entry.ai_addrlen, &text, 256, nil, 0, NI_NUMERICHOST) == 0 else {
                continue
            }
            let address = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if !found.contains(address) { found.append(address) }
        }
        return found
    }
}

/// One call on a connection. `end` says whether the connection serves again.
private struct WebhookTurn: Sendable {
    let head: HTTPRequestHead
    let body: ByteBuffer
    let answer: EventLoopPromise<WebhookAnswer>
    let end: @Sendable (_ isOver: Bool) -> Void
}

/// Reads the status before the decoder, and ends a connection whose answer is too long, wherever it is long.
private final class WebhookStatusGate: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = IOData

    static let answerBytesMax = 64 * 1024
    private var count = 0
    private var line: [UInt8] = []

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        (count, line) = (0, [])
        context.write(data, promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        count += bytes.readableBytes
        // HTTP/1.1 200 and a blank, or the end of the line.
        let length = 13
        if line.count < length {
            line += bytes.readableBytesView.prefix(length - line.count)
            if line.count == length, line.starts(with: Array("HTTP/1.".utf8)), [0x20, 0x0D, 0x0A].contains(line[12]),
                let code = Int(String(decoding: line[9..<12], as: UTF8.self)), code >= 200
            {
                context.fireUserInboundEventTriggered(WebhookAnswer(status: code))
            }
        }
        guard count <= Self.answerBytesMax else { return context.close(promise: nil) }
        context.fireChannelRead(data)
    }
}

/// Makes the calls of one connection, one after the other.
private final class WebhookExchange: ChannelDuplexHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundIn = WebhookTurn
    typealias OutboundOut = HTTPClientRequestPart

    private var turn: WebhookTurn?
    private var answer: WebhookAnswer?
    private var servesAgain = false

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let turn = unwrapOutboundIn(data)
        (self.turn, answer, servesAgain) = (turn, nil, false)
        context.write(wrapOutboundOut(.head(turn.head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(turn.body))), promise: nil)
        context.write(wrapOutboundOut(.end(nil)), promise: promise)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case let early as WebhookAnswer: answer = early
        case is IdleStateHandler.IdleStateEvent: if turn == nil { context.close(promise: nil) }
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            servesAgain = head.isKeepAlive
            answer = WebhookAnswer(status: Int(head.status.code), headers: head.headers)
        case .body: break
        case .end: finish(isOver: servesAgain)
        }
    }

    /// Answers after all that came was read: a connection whose answer came in one read serves again by then.
    func channelReadComplete(context: ChannelHandlerContext) {
        if let answer, answer.isEnough { turn?.answer.succeed(answer) }
        context.fireChannelReadComplete()
    }

    func channelInactive(context: ChannelHandlerContext) {
        finish(isOver: false, WebhookCallError.closed)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        finish(isOver: false, error)
        context.close(promise: nil)
    }

    /// Ends the call: a status that was read counts, whatever came after it.
    private func finish(isOver: Bool, _ error: any Error = WebhookCallError.closed) {
        let ended = turn
        turn = nil
        // The connection serves again before its caller goes on, and closes after the caller has the reason.
        if isOver { ended?.end(true) }
        if let answer { ended?.answer.succeed(answer) } else { ended?.answer.fail(error) }
        if !isOver { ended?.end(false) }
    }
}
