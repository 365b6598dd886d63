import Foundation
import NIOCore
import NIOPosix
import NIOSSL

extension Simulator {
    private static let threadsMax = 4

    /// Listens on the options' host and port until the task is cancelled; then stops listening, closes the connections
    /// and returns. `onListening` receives the port. Throws when the address cannot be bound.
    package func run(onListening: @Sendable (Int) async -> Void = { _ in }) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: min(System.coreCount, Self.threadsMax))
        do {
            try await serve(on: group, onListening: onListening)
        } catch {
            try await group.shutdownGracefully()
            throw error
        }
        try await group.shutdownGracefully()
    }

    /// Listens, and sends notifications meanwhile, until the task is cancelled.
    private func serve(on group: MultiThreadedEventLoopGroup, onListening: @Sendable (Int) async -> Void) async throws {
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 1024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { child in
                child.eventLoop.makeCompletedFuture {
                    if let identity = self.identity {
                        try child.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: identity.context))
                    }
                    try child.pipeline.syncOperations.addHandler(StoreRequestHandler(simulator: self))
                }
            }
            .bind(host: options.host, port: options.port).get()
        try await withTaskCancellationHandler {
            await onListening(channel.localAddress?.port ?? options.port)
            await withTaskGroup(of: Void.self) { tasks in
                for store in [self, neighbour].compactMap({ $0 }) {
                    tasks.addTask { await store.notify(on: group) }
                }
                await tasks.waitForAll()
            }
            try await channel.closeFuture.get()
        } onCancel: {
            channel.close(promise: nil)
        }
    }
}

extension Simulator {
    /// Returns the store whose verifyReceipt has this path; nil for any other path.
    static func store(at path: String) -> StoreEnvironment? {
        switch path {
        case "/verifyReceipt": .production
        case "/sandbox/verifyReceipt": .sandbox
        default: nil
        }
    }

    /// Answers one HTTP request, with its fault if it has one. Never throws: a failure is a response too.
    package func respond(to request: SimulatorRequest) -> SimulatorReply {
        let parts = request.path.split(separator: "?", maxSplits: 1)
        let path = parts.first.map { String($0) } ?? "/"
        if let environment = Self.store(at: path) { return verify(request, at: environment) }
        if let place = ServerCall.place(path) { return serve(request, at: place.environment, path: place.path) }
        guard path.hasPrefix("/simulator/") else { return SimulatorReply(code: 404, body: Array("Not Found".utf8)) }
        let query = URLComponents(string: request.path)?.queryItems ?? []
        return control(request, path: path.split(separator: "/").dropFirst().map { String($0) }, query: query)
    }

    /// Answers a verifyReceipt request over HTTP. Apple answers 200 whatever the business outcome, and sends no
    /// Content-Type.
    private func verify(_ request: SimulatorRequest, at environment: StoreEnvironment) -> SimulatorReply {
        let body =
            request.method == "POST"
            ? answer(request.body, at: environment) : StatusCheck.unreadableRequest.errorBody(at: environment)
        let call = conditions.nextCall()
        let uuid = correlation(of: call)
        var reply = SimulatorReply(
            headers: [("x-apple-jingle-correlation-key", uuid.uppercased()), ("x-apple-request-uuid", uuid)],
            body: body)
        reply.delaySeconds = Double(max(0, options.latencyMilliseconds)) / 1000
        return conditions.fault(ofCall: call, at: clock.now)?.applied(to: reply) ?? reply
    }

    /// Returns the UUID in the headers of a response. Apple's support asks for these; here they distinguish calls.
    func correlation(of call: UInt64) -> String {
        var numbers = SeededGenerator(seed: options.seed, stream: call)
        return UUID.text(numbers.next(), numbers.next())
    }
}

/// A channel handler that reads requests, asks the store, and sends each response with its fault, one after the other.
final class StoreRequestHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The most pieces of a dripping response.
    private static let dropsMax = 20

    private let simulator: Simulator
    private let answersPlainly: Bool
    private var reader: StoreRequestReader
    /// Whether a response is being made or delayed; later requests wait in the reader.
    private var isBusy = false
    /// Whether responses are being made further up the stack.
    private var isInTurn = false
    /// The bytes not written to the socket yet.
    private var output = ByteBuffer()

    init(simulator: Simulator) {
        self.simulator = simulator
        answersPlainly = simulator.options.latencyMilliseconds <= 0
        reader = StoreRequestReader(bodyBytesMax: simulator.options.bodyBytesMax)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        reader.append(&bytes)
        answerNext(context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    /// Answers every request that is complete and can be answered at once.
    private func answerNext(_ context: ChannelHandlerContext) {
        guard !isInTurn else { return }
        isInTurn = true
        while !isBusy, context.channel.isActive {
            do {
                guard let request = try reader.next() else { break }
                answer(request.head, request.body, context)
            } catch {
                isBusy = true
                send(SimulatorReply(error), keepsAlive: false, context)
            }
        }
        if !isBusy, reader.takeContinue() { output.writeStaticString("HTTP/1.1 100 Continue\r\n\r\n") }
        isInTurn = false
        flush(context)
    }

    /// Answers one request: plain verifyReceipt calls at once, others by `respond`.
    private func answer(_ head: StoreRequestHead, _ body: [UInt8], _ context: ChannelHandlerContext) {
        let asked = SimulatorRequest(
            method: head.method, path: head.path, body: body, authorization: head.authorization)
        guard let environment = Simulator.store(at: head.path) else {
            isBusy = true
            return respond(to: asked, keepsAlive: head.keepsAlive, context)
        }
        guard answersPlainly, simulator.conditions.isQuiet, head.keepsAlive, head.method == "POST" else {
            isBusy = true
            return deliver(simulator.respond(to: asked), keepsAlive: head.keepsAlive, context)
        }
        let (answer, moment) = simulator.finishedAnswer(body, at: environment)
        let call = simulator.conditions.nextCall()
        output.write(answer, requestedAt: moment, correlation: simulator.correlation(of: call), keepsAlive: true)
    }

    /// Responds to a request of the control API, on another thread because its responses can be long.
    private func respond(to request: SimulatorRequest, keepsAlive: Bool, _ context: ChannelHandlerContext) {
        let simulator = simulator
        let reply = NIOThreadPool.singleton.runIfActive(eventLoop: context.eventLoop) { simulator.respond(to: request) }
        reply.assumeIsolated().whenComplete { result in
            switch result {
            case .success(let reply): self.deliver(reply, keepsAlive: keepsAlive, context)
            case .failure: context.close(promise: nil)
            }
        }
    }

    /// Sends a reply after its delay.
    private func deliver(_ reply: SimulatorReply, keepsAlive: Bool, _ context: ChannelHandlerContext) {
        guard reply.delaySeconds > 0 else { return send(reply, keepsAlive: keepsAlive, context) }
        later(reply.delaySeconds, context) { self.send(reply, keepsAlive: keepsAlive, context) }
    }

    /// Sends a reply with the fault in its delivery.
    private func send(_ reply: SimulatorReply, keepsAlive: Bool, _ context: ChannelHandlerContext) {
        guard reply.delivery != .never else { return context.close(promise: nil) }
        output.writeHead(of: reply, keepsAlive: keepsAlive)
        switch reply.delivery {
        case .never: break
        case .whole:
            output.writeBytes(reply.body)
            end(keepsAlive: keepsAlive, context)
        case .cut(let bytes):
            // The peer sees the connection close before the declared length.
            output.writeBytes(reply.body.prefix(bytes))
            end(keepsAlive: false, context)
        case .dripping(let seconds):
            flush(context)
            let size = max(1, (reply.body.count + Self.dropsMax - 1) / Self.dropsMax)
            let drops = (reply.body.count + size - 1) / size
            drip(reply.body[...], size: size, every: seconds / Double(max(1, drops)), keepsAlive: keepsAlive, context)
        }
    }

    /// Sends the rest of a body in small pieces.
    private func drip(
        _ body: ArraySlice<UInt8>, size: Int, every seconds: Double, keepsAlive: Bool, _ context: ChannelHandlerContext
    ) {
        later(seconds, context) {
            self.output.writeBytes(body.prefix(size))
            let rest = body.dropFirst(size)
            guard !rest.isEmpty else { return self.end(keepsAlive: keepsAlive, context) }
            self.flush(context)
            self.drip(rest, size: size, every: seconds, keepsAlive: keepsAlive, context)
        }
    }

    /// Ends a response whose last bytes are in the output, and starts the next request.
    private func end(keepsAlive: Bool, _ context: ChannelHandlerContext) {
        guard !keepsAlive else {
            isBusy = false
            return answerNext(context)
        }
        let sent = context.eventLoop.makePromise(of: Void.self)
        sent.futureResult.assumeIsolated().whenComplete { _ in context.close(promise: nil) }
        flush(context, promise: sent)
    }

    /// Writes the output to the socket.
    private func flush(_ context: ChannelHandlerContext, promise: EventLoopPromise<Void>? = nil) {
        guard output.readableBytes > 0 else {
            promise?.succeed()
            return
        }
        let bytes = output
        output = ByteBuffer()
        context.writeAndFlush(wrapOutboundOut(bytes), promise: promise)
    }

    private func later(_ seconds: Double, _ context: ChannelHandlerContext, _ body: @escaping () -> Void) {
        context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(Int64(seconds * 1000))) {
            if context.channel.isActive { body() }
        }
    }
}

extension SimulatorReply {
    fileprivate init(_ refusal: StoreRequestReader.Refusal) {
        switch refusal {
        case .badRequest: self.init(code: 400, body: Array("Bad Request".utf8))
        case .tooLarge: self.init(code: 413, body: Array("Request Entity Too Large".utf8))
        }
    }
}
