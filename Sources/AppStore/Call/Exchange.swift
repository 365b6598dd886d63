import AsyncHTTPClient
import NIOCore
import NIOHTTP1

/// What one HTTP call brought, before anybody reads meaning into it.
struct Exchange: Sendable {
    /// Nil when no answer began.
    var httpStatus: Int?
    var headers = HTTPHeaders()
    var body: [UInt8] = []
    /// Why there is no whole answer with HTTP 200; nil when there is one.
    var trouble: String?

    /// Apple's name for this call; printable and short.
    var correlationID: String? {
        ["x-apple-jingle-correlation-key", "x-apple-request-uuid"].lazy
            .compactMap { headers.first(name: $0) }.first.map { $0.printable(charactersMax: 100) }
    }

    /// An exchange that never began.
    static func failed(_ trouble: String) -> Exchange { Exchange(trouble: trouble) }
}

/// Makes one call: sends a body to an address, reads a bounded answer before a moment in time.
struct Caller: Sendable {
    let client: HTTPClient
    let responseBytesMax: Int

    /// Calls `url`; never throws.
    func call(_ url: String, sending body: String, until end: ContinuousClock.Instant) async -> Exchange {
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "content-type", value: "application/json")
        request.headers.add(name: "user-agent", value: "perennial")
        request.body = .bytes(ByteBuffer(string: body))
        let prepared = request
        do {
            let response = try await bounded(until: end) {
                let left = max(.zero, ContinuousClock.now.duration(to: end))
                return try await client.execute(prepared, deadline: .now() + .nanoseconds(left.wholeNanoseconds))
            }
            return await read(response, until: end)
        } catch {
            return .failed(Trouble.failure(error))
        }
    }

    private func read(_ response: HTTPClientResponse, until end: ContinuousClock.Instant) async -> Exchange {
        var exchange = Exchange(httpStatus: Int(response.status.code), headers: response.headers)
        // The client may have been made without our configuration: an answer from elsewhere is not Apple's.
        guard response.history.count <= 1 else {
            exchange.trouble = Trouble.followedRedirect
            return exchange
        }
        do {
            let arrived = try await bounded(until: end) { await collect(response) }
            exchange.body = arrived.bytes
            exchange.trouble = arrived.trouble
        } catch {
            exchange.trouble = Trouble.failure(error)
        }
        if response.status != .ok {
            exchange.trouble = Trouble.http(Int(response.status.code), body: exchange.body)
        }
        return exchange
    }

    private func collect(_ response: HTTPClientResponse) async -> (bytes: [UInt8], trouble: String?) {
        let announced = response.headers.first(name: "content-length").flatMap { Int($0) }
        if let announced, announced > responseBytesMax { return ([], Trouble.tooLarge(responseBytesMax)) }
        var bytes: [UInt8] = []
        do {
            for try await part in response.body {
                guard bytes.count + part.readableBytes <= responseBytesMax else {
                    return ([], Trouble.tooLarge(responseBytesMax))
                }
                bytes.append(contentsOf: part.readableBytesView)
            }
        } catch {
            return (bytes, Trouble.brokenTransfer(bytes: bytes.count, error))
        }
        // A cancelled body ends early as if it were whole.
        if Task.isCancelled { return (bytes, Trouble.failure(CancellationError())) }
        return (bytes, nil)
    }

    /// Runs `work`, but no longer than until `end`. The client's own deadline ends with the response head; a body may stall.
    private func bounded<Value: Sendable>(
        until end: ContinuousClock.Instant, _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await withThrowingTaskGroup(of: Value.self) { group in
            defer { group.cancelAll() }
            group.addTask(operation: work)
            group.addTask {
                try await Task.sleep(until: end, clock: .continuous)
                throw HTTPClientError.deadlineExceeded
            }
            guard let first = try await group.next() else { throw CancellationError() }
            return first
        }
    }
}

extension String {
    /// This text on one line and no longer than `charactersMax`: what a server sent must not break a log.
    func printable(charactersMax: Int) -> String {
        String(prefix(charactersMax).map { $0.isASCII && !$0.isNewline && $0 >= " " && $0 != "\u{7F}" ? $0 : "?" })
    }
}
