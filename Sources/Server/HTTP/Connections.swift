import Foundation
import HTTPTypes
package import Hummingbird
import HummingbirdCore
package import Logging
package import NIOCore
package import NIOHTTP1
import NIOHTTPTypesHTTP1
import Synchronization

/// The connections of a server. Each answers its requests one after the other, on the thread of its event loop.
///
/// swift-nio reads and writes HTTP, and keeps requests and answers in their order. The framework's own connection
/// passes each part of them through an asynchronous sequence besides; for a lookup that cost more than the lookup
/// itself.
package struct Connections<Responder: HTTPResponder>: ServerChildChannel
where Responder.Context: InitializableFromSource<ApplicationRequestContextSource> {
    let responder: Responder
    let limits: ServerLimits

    /// Sets a new connection up.
    package func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<CallerConnection> {
        channel.eventLoop.makeCompletedFuture {
            var heads = NIOHTTPDecoderLimitConfiguration()
            heads.maxHeaderFieldSize = limits.headerBytesMax
            heads.maxHeaderListSize = limits.headerListBytesMax
            heads.maxHeaderFieldCount = limits.headerFieldsMax
            let decoder = HTTPRequestDecoder(limitConfiguration: heads)
            let connection = CallerConnection(channel, limits)
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(HTTPResponseEncoder())
            try pipeline.addHandler(ByteToMessageHandler(decoder, maximumBufferSize: limits.headerListBytesMax))
            try pipeline.addHandler(HTTPServerPipelineHandler())
            try pipeline.addHandler(connection)
            return connection
        }
    }

    /// Answers the requests of a connection until it has closed.
    package func handle(value connection: CallerConnection, logger: Logger) async {
        await withTaskCancellationHandler {
            await withTaskExecutorPreference(connection.executor) { await serve(connection, logger) }
            try? await connection.channel.closeFuture.get()
        } onCancel: {
            connection.channel.close(promise: nil)
        }
    }

    private func serve(_ connection: CallerConnection, _ logger: Logger) async {
        while let arrival = await connection.next() {
            switch arrival {
            case .request(let request):
                let context = Responder.Context(source: .init(channel: connection.channel, logger: logger))
                let response =
                    (try? await responder.respond(to: request, context: context))
                    ?? Response(status: .internalServerError)
                await connection.answer(response, isHead: request.method == .head)
            case .unreadable: await connection.answer(limits.unreadable(logger), isHead: false)
            }
        }
        connection.finish()
    }
}

extension Connections {
    /// Creates the connections of what answers the requests, with the usual limits.
    package init(responder: Responder) { self.init(responder: responder, limits: ServerLimits()) }
}

extension ServerLimits {
    /// Returns the answer to what cannot be parsed as HTTP, which reaches no route.
    fileprivate func unreadable(_ logger: Logger) -> Response {
        let requestID = RequestID.next()
        logger.debug("what cannot be read was refused", metadata: ["request_id": "\(requestID)"])
        let problem = Problem(
            .invalid,
            """
            This cannot be read as an HTTP request. Its head may have \(headerFieldsMax) headers, \
            \(headerListBytesMax / 1024) KiB, and \(headerBytesMax / 1024) KiB in a line.
            """)
        var response = problem.response(requestID: requestID)
        response.headers[.requestID] = requestID
        return response
    }
}

/// One connection: a handler that collects its requests, and functions for the task that answers them, all on one
/// thread.
package final class CallerConnection: ChannelDuplexHandler, ServerChildChannelValue, @unchecked Sendable {
    package typealias InboundIn = HTTPServerRequestPart
    package typealias OutboundIn = HTTPServerResponsePart
    package typealias OutboundOut = HTTPServerResponsePart

    /// What the task that answers gets.
    fileprivate enum Arrival: Sendable {
        case request(Request)
        case unreadable
    }

    private typealias BodyParts = NIOThrowingAsyncSequenceProducer<
        ByteBuffer, any Error, NIOAsyncSequenceProducerBackPressureStrategies.HighLowWatermark, BodyDemand
    >

    /// The channel of the connection.
    package let channel: any Channel
    fileprivate let executor: EventLoopExecutor
    private let limits: ServerLimits
    private var context: ChannelHandlerContext?

    /// What arrived while the task that answers did not wait; at most one, as the next request comes after an answer.
    private var arrival: Arrival?
    /// The task that answers, while it waits for a request; and while the caller does not take what was sent.
    private var (taker, writer): (UnsafeContinuation<Arrival?, Never>?, UnsafeContinuation<Void, Never>?)
    /// Whether no further request is taken, so that the connection ends with the answer under way.
    private var isLast = false

    /// A request of whose body nothing has come yet.
    private var head: HTTPRequestHead?
    /// The place for the rest of a body; nil also where no route wants it.
    private var body: BodyParts.Source?
    private var (isBodyFull, isReadPostponed, unwantedBytes) = (false, false, 0)

    /// Whether a request has begun and not ended; whether one is to be answered.
    private var (isArriving, isAnswering) = (false, false)
    private var silentSince = NIODeadline.now()
    private var silence: Scheduled<Void>?

    fileprivate init(_ channel: any Channel, _ limits: ServerLimits) {
        (self.channel, self.limits, executor) = (channel, limits, EventLoopExecutor(channel.eventLoop))
    }
}

/// The functions of the task that answers.
extension CallerConnection {
    /// Returns what comes next, once it is there; nil at the end.
    fileprivate func next() async -> Arrival? {
        channel.eventLoop.preconditionInEventLoop()
        if let arrival = arrival.take() { return arrival }
        return isLast ? nil : await withUnsafeContinuation { taker = $0 }
    }

    /// Sends an answer, and waits while the caller does not take it.
    fileprivate func answer(_ response: Response, isHead: Bool) async {
        let body = WholeBody()
        let isWhole = (try? await response.body.write(body)) != nil
        channel.eventLoop.preconditionInEventLoop()
        (isAnswering, silentSince) = (false, .now())
        isLast = isLast || !isWhole || response.headers.contains(.connection)
        guard let context, channel.isActive, isWhole else { return }
        var head = HTTPResponseHead(response.head)
        if !response.headers.contains(.contentLength) {
            head.headers.add(name: "Content-Length", value: String(body.bytes.readableBytes))
        }
        if isLast { head.headers.replaceOrAdd(name: "Connection", value: "close") }
        head.headers.add(name: "Date", value: HTTPDate.now)
        head.headers.add(name: "Server", value: HTTPServer.name)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if !isHead { context.write(wrapOutboundOut(.body(.byteBuffer(body.bytes))), promise: nil) }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        if !channel.isWritable, channel.isActive { await withUnsafeContinuation { writer = $0 } }
    }

    /// Ends the connection when all answers are sent. Until the caller ends it too, what it sends is read and dropped:
    /// a socket that closes with unread bytes loses what it has sent.
    fileprivate func finish() {
        (isLast, body) = (true, nil)
        readOn()
        context?.close(mode: .output, promise: nil)
    }
}

/// What the event loop tells.
extension CallerConnection {
    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        watchSilence(until: .now() + .seconds(limits.idleSeconds))
    }

    package func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            guard !isLast else { return }
            (self.head, silentSince, isArriving, unwantedBytes) = (head, .now(), true, 0)
        case .body(let bytes):
            deliverHead()
            take(bytes, context)
        case .end:
            (isArriving, isBodyFull) = (false, false)
            if let head = head.take() { deliver(head, RequestBody(buffer: ByteBuffer())) }
            body?.finish()
            body = nil
        }
    }

    package func channelReadComplete(context: ChannelHandlerContext) { deliverHead() }

    package func read(context: ChannelHandlerContext) {
        if isBodyFull { isReadPostponed = true } else { context.read() }
    }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        if channel.isWritable { writer.take()?.resume() }
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event { end(ChannelError.eof) }
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard error is HTTPParserError, channel.isActive else { return context.close(promise: nil) }
        deliverHead()
        guard !isArriving, !isLast else { return end(error) }
        isLast = true
        deliver(.unreadable)
    }

    package func channelInactive(context: ChannelHandlerContext) {
        silence?.cancel()
        deliverHead()
        end(ChannelError.eof)
        writer.take()?.resume()
    }

    /// Hands on a request whose body has not come with its head. The body follows in parts.
    private func deliverHead() {
        guard let head = head.take() else { return }
        let parts = BodyParts.makeSequence(
            backPressureStrategy: .init(lowWatermark: 2, highWatermark: 4), finishOnDeinit: true,
            delegate: BodyDemand(connection: self))
        body = parts.source
        deliver(head, RequestBody(asyncSequence: parts.sequence))
    }

    private func deliver(_ head: HTTPRequestHead, _ body: RequestBody) {
        // What follows a request to change the protocol is not parsed.
        isLast = !head.isKeepAlive || head.method == .CONNECT || head.headers.contains(name: "Upgrade")
        isAnswering = true
        guard let request = try? HTTPRequest(of: head) else {
            isLast = true
            return deliver(.unreadable)
        }
        deliver(.request(Request(head: request, body: body)))
    }

    private func deliver(_ arrival: Arrival) {
        guard let taker = taker.take() else { return self.arrival = arrival }
        executor.runNow { taker.resume(returning: arrival) }
    }

    private func end(_ error: any Error) {
        isLast = true
        body?.finish(error)
        body = nil
        taker.take()?.resume(returning: nil)
    }

    private func take(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
        switch body?.yield(bytes) {
        case .produceMore: silentSince = .now()
        case .stopProducing: (silentSince, isBodyFull) = (.now(), true)
        case .dropped, nil:
            body = nil
            unwantedBytes += bytes.readableBytes
            if unwantedBytes > limits.bodyBytesMax { context.close(promise: nil) }
        }
    }

    fileprivate func readOn() {
        isBodyFull = false
        guard isReadPostponed else { return }
        isReadPostponed = false
        context?.read()
    }

    /// Closes a silent connection. A caller who waits for an answer is not silent; one who does not take it is.
    private func watchSilence(until end: NIODeadline) {
        silence = channel.eventLoop.assumeIsolated().scheduleTask(deadline: end) { [self] in
            if isAnswering && !isArriving && writer == nil { silentSince = .now() }
            let end = silentSince + .seconds(limits.idleSeconds)
            if end > .now() { watchSilence(until: end) } else { channel.close(promise: nil) }
        }
    }
}

/// Tells a connection that the next parts of a body are wanted, or none.
private struct BodyDemand: NIOAsyncSequenceProducerDelegate {
    let connection: CallerConnection

    func produceMore() { connection.channel.eventLoop.execute { connection.readOn() } }

    func didTerminate() { produceMore() }
}

/// Collects the body of an answer, which is sent in one piece.
private final class WholeBody: ResponseBodyWriter {
    private(set) var bytes = ByteBuffer()

    func write(_ buffer: ByteBuffer) {
        if bytes.readableBytes == 0 { bytes = buffer } else { bytes.writeImmutableBuffer(buffer) }
    }

    func finish(_ trailingHeaders: HTTPFields?) {}
}

extension HTTPRequest {
    /// Creates a request from its head. Most name a path alone, which needs no reading of a URL.
    fileprivate init(of head: HTTPRequestHead) throws {
        guard head.uri.utf8.first == UInt8(ascii: "/") else {
            self = try HTTPRequest(head, secure: false, splitCookie: false)
            return
        }
        self.init(
            method: try Method(head.method), scheme: "http", authority: head.headers.first(name: "Host"),
            path: head.uri, headerFields: HTTPFields(head.headers, splitCookie: false))
    }
}

/// The text of a moment in the header `Date`, written once a second.
private enum HTTPDate {
    private static let latest = Mutex<(second: time_t, text: String)>((0, ""))

    static var now: String {
        let second = time(nil)
        return latest.withLock { latest in
            if latest.second != second { latest = (second, text(of: second)) }
            return latest.text
        }
    }

    private static func text(of second: time_t) -> String {
        var (second, parts) = (second, tm())
        gmtime_r(&second, &parts)
        var text = [CChar](repeating: 0, count: 64)
        let length = strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
        return String(decoding: text[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// Middleware that answers on Swift's own threads, because other connections of the event loop would wait meanwhile.
/// Only routes that need microseconds do without it.
struct OffEventLoop: RouterMiddleware {
    func handle(
        _ request: Request, context: CallerContext, next: (Request, CallerContext) async throws -> Response
    ) async throws -> Response {
        try await withTaskExecutorPreference(globalConcurrentExecutor) { try await next(request, context) }
    }
}

/// An executor that runs the task of a connection on the thread of its event loop, which wakes no other thread. It
/// suits short work between waits: while a task runs, nothing else of that loop does.
package final class EventLoopExecutor: TaskExecutor, @unchecked Sendable {
    private let loop: any EventLoop
    /// Whether the next job runs at once; only the thread of the loop uses it.
    private var runsNext = false

    /// Creates an executor for tasks that end before the loop does.
    package init(_ loop: any EventLoop) { self.loop = loop }

    /// Resumes a task and runs it until it waits again. The caller is the event loop, outside of any task.
    func runNow(_ resume: () -> Void) {
        runsNext = true
        resume()
        runsNext = false
    }

    /// Takes a job from the Swift runtime.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if loop.inEventLoop, runsNext {
            runsNext = false
            return job.runSynchronously(on: asUnownedTaskExecutor())
        }
        loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
