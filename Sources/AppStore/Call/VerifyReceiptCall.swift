package import AsyncHTTPClient
package import Foundation
import JSON
import NIOCore
package import NIOHTTP1
import Subscriptions
import Synchronization

extension AppStoreClient {
    /// Returns a client of the real App Store over HTTP, through a `client` of `options.withClient`. It switches store
    /// on 21007 or 21008 at most once, tries the previous secret once on 21004, and always requests full histories.
    ///
    /// If Apple sends a `Sunset` or `Deprecation` header, `note` gets a sentence for the operator, once per
    /// announcement and from any thread; it never gets a secret or a receipt.
    package static func live(
        _ options: AppStoreOptions, client: HTTPClient, server: ServerAPIClient = .none,
        note: @escaping @Sendable (String) -> Void
    ) -> AppStoreClient {
        let caller = HTTPCall(client: client, responseBytesMax: options.responseBytesMax)
        let notes = RetirementNotes(note: note)
        // An address is read once, not for every call.
        let calls = [StoreEnvironment.production, .sandbox].reduce(into: [:]) { calls, environment in
            calls[environment] = try? HTTPClient.Request(
                url: options.url(of: environment), method: .POST, headers: HTTPCall.jsonHeaders)
        }
        return AppStoreClient(server: server) { request in
            await VerifyReceiptCall(options: options, caller: caller, calls: calls, notes: notes, request: request)
                .run()
        }
    }
}

/// One `verify`: up to three calls under one deadline.
struct VerifyReceiptCall: Sendable {
    let options: AppStoreOptions
    let caller: HTTPCall
    /// The calls of the stores but for their bodies; none for an address that cannot be read.
    let calls: [StoreEnvironment: HTTPClient.Request]
    let notes: RetirementNotes
    let request: AppStoreRequest

    func run() async -> AppStoreAnswer {
        let start = ContinuousClock.now
        let end = start + options.deadline
        var routing = StoreRouting(request)
        let receiptBytes = request.receipt.utf8.count
        guard receiptBytes <= options.requestBytesMax else {
            let refusal = CallFailure.requestTooLarge(receiptBytes, limit: options.requestBytesMax)
            return answer(CallResult(failure: refusal), routing, calls: 0, since: start)
        }
        var calls = 0
        while true {
            guard calls == 0 || ContinuousClock.now < end else {
                return answer(CallResult(failure: CallFailure.noTimeLeft), routing, calls: calls, since: start)
            }
            calls += 1
            let result = await ask(routing, until: end)
            notes.look(at: result.headers, from: routing.environment, hiding: secrets)
            let asked = routing
            let outline = result.httpStatus == 200 ? AnswerOutline(of: result.body) : nil
            let unread = result.failure == nil ? UnreadBody(result.body) : nil
            // A genuine receipt ends the questions; its body is decoded when it is asked for.
            if outline?.saysGenuine != true, case .success(let response) = unread?.decoded,
                routing.goesOn(after: response.status)
            {
                continue
            }
            return answer(result, asked, outline, unread, calls: calls, since: start)
        }
    }

    private func ask(_ routing: StoreRouting, until end: ContinuousClock.Instant) async -> CallResult {
        let body = body(routing.password)
        guard var call = calls[routing.environment] else {
            return await caller.call(options.url(of: routing.environment), sending: body, until: end)
        }
        call.body = .byteBuffer(body)
        return await caller.send(call, until: end)
    }

    private var secrets: Secrets { Secrets(current: request.secret, previous: request.previousSecret) }

    /// Always requests full histories: without them an expired sandbox subscription may return an old row.
    private func body(_ password: String?) -> ByteBuffer {
        ByteBuffer(
            bytes: JSONText {
                $0.member("receipt-data", request.receipt)
                if let password { $0.member("password", password) }
                $0.member("exclude-old-transactions", false)
            }.bytes)
    }

    private func answer(
        _ result: CallResult, _ asked: StoreRouting, _ outline: AnswerOutline? = nil, _ unread: UnreadBody? = nil,
        calls: Int, since start: ContinuousClock.Instant
    ) -> AppStoreAnswer {
        func hidden(_ text: String?) -> String? { text.map { secrets.hidden(in: $0) } }
        return AppStoreAnswer(
            environment: asked.environment, httpStatus: result.httpStatus, body: result.body, outline: outline,
            unread: unread, callFailure: hidden(result.failure), failureDetail: hidden(result.failureDetail),
            calls: calls, usedPreviousSecret: asked.usesPreviousSecret,
            elapsedMilliseconds: start.duration(to: .now).wholeMilliseconds, retryAfterSeconds: result.retryAfterSeconds
        )
    }
}

/// The next request, decided from the last status alone: which store, with which secret. It allows at most one switch
/// of store and one change of secret, so at most three calls. A store that sends us back is Apple's fault and final.
struct StoreRouting: Equatable {
    private(set) var environment: StoreEnvironment
    private(set) var usesPreviousSecret = false
    private let secrets: Secrets
    private let sandboxAllowed: Bool
    private var switched = false

    init(_ request: AppStoreRequest) {
        environment = request.sandboxAllowed ? request.askFirst : .production
        sandboxAllowed = request.sandboxAllowed
        secrets = Secrets(current: request.secret, previous: request.previousSecret)
    }

    /// The password of the next call; nil if there is none to send.
    var password: String? { usesPreviousSecret ? secrets.previous : secrets.current }

    /// Processes the status of the last call; returns true if another call is needed.
    mutating func goesOn(after status: Int?) -> Bool {
        switch (status, environment) {
        case (21007, .production) where sandboxAllowed && !switched: (environment, switched) = (.sandbox, true)
        case (21008, .sandbox) where !switched: (environment, switched) = (.production, true)
        case (21004, _) where !usesPreviousSecret && secrets.previous != nil: usesPreviousSecret = true
        case (_, .production), (_, .sandbox): return false
        }
        return true
    }
}

/// The shared secrets of an app that are worth trying.
struct Secrets: Equatable {
    let current: String?
    let previous: String?

    /// Treats empty secrets as none; a previous secret equal to the current one is not worth a call.
    init(current: String?, previous: String?) {
        self.current = current.flatMap { $0.isEmpty ? nil : $0 }
        self.previous = previous.flatMap { $0.isEmpty || $0 == current ? nil : $0 }
    }

    /// Returns `text` without any secret in it, in case a server echoed one.
    func hidden(in text: String) -> String {
        [current, previous].compactMap(\.self).filter { $0.utf8.count <= text.utf8.count }
            .reduce(text) { $0.replacing($1, with: "(secret)") }
    }
}

/// Makes one call: sends a body to an address and reads a bounded answer before a deadline.
struct HTTPCall: Sendable {
    let client: HTTPClient
    let look: CertificateInspection
    let responseBytesMax: Int
    /// The seconds a body may arrive at any speed before the minimum speed applies.
    let slowSecondsMax: Double

    init(client: HTTPClient, responseBytesMax: Int, slowSecondsMax: Double = AnswerGathering.slowSecondsMax) {
        self.client = client
        self.responseBytesMax = responseBytesMax
        self.slowSecondsMax = slowSecondsMax
        look = CertificateInspection(on: client.eventLoopGroup)
    }

    static let jsonHeaders: HTTPHeaders = ["content-type": "application/json", "user-agent": "perennial"]

    /// Calls `url`; never throws.
    func call(
        _ url: String, _ method: HTTPMethod = .POST, headers: HTTPHeaders = jsonHeaders, sending body: ByteBuffer?,
        until end: ContinuousClock.Instant
    ) async -> CallResult {
        do {
            let request = try HTTPClient.Request(
                url: url, method: method, headers: headers, body: body.map { .byteBuffer($0) })
            return await send(request, until: end)
        } catch {
            return failed(CallResult(), error)
        }
    }

    /// Sends a request; never throws.
    func send(_ request: HTTPClient.Request, until end: ContinuousClock.Instant) async -> CallResult {
        let gathering = AnswerGathering(bytesMax: responseBytesMax, slowSecondsMax: slowSecondsMax)
        do {
            let left = max(.zero, ContinuousClock.now.duration(to: end))
            let task = client.execute(
                request: request, delegate: gathering, deadline: .now() + .nanoseconds(left.wholeNanoseconds))
            try await withTaskCancellationHandler {
                try await task.get()
            } onCancel: {
                task.cancel()
            }
        } catch {
            var result = failed(gathering.result, error)
            if TLSFailure(error) == .unverified, ContinuousClock.now + CertificateInspection.limit < end {
                result.failure = await look.failure(at: request.url.absoluteString).sentence
            }
            return result
        }
        var result = gathering.result
        if let status = result.httpStatus, status != 200 {
            result.failure = CallFailure.http(status, body: result.body)
        }
        // The client may have been made without our configuration: an answer from another address is not Apple's.
        if gathering.followedRedirect {
            result.body = []
            result.failure = CallFailure.followedRedirect
        }
        return result
    }

    /// Returns the part that had arrived when the call failed, with the reason for the failure.
    private func failed(_ arrived: CallResult, _ error: any Error) -> CallResult {
        var result = arrived
        if error is AnswerGathering.TooLarge {
            result.body = []
            result.failure = CallFailure.tooLarge(responseBytesMax)
        } else if error is AnswerGathering.TooSlow {
            result.body = []
            result.failure = CallFailure.tooSlow
        } else if let status = arrived.httpStatus, status != 200 {
            result.failure = CallFailure.http(status, body: arrived.body)
        } else if arrived.httpStatus != nil, !CallFailure.isOutOfTime(error) {
            result.failure = CallFailure.brokenTransfer(bytes: arrived.body.count)
            result.failureDetail = CallFailure.name(of: error)
        } else {
            result.body = []
            result.failure = CallFailure.failure(error)
            result.failureDetail = CallFailure.detail(of: error)
        }
        return result
    }
}

/// Gathers one answer on the client's event loop, up to a bounded size; keeps the part that arrived before a failure.
final class AnswerGathering: HTTPClientResponseDelegate {
    typealias Response = Void

    /// The answer announced or contained more bytes than allowed.
    struct TooLarge: Error {}

    /// The answer comes so slowly that it only occupies a connection.
    struct TooSlow: Error {}

    /// The seconds a body may arrive at any speed, and the minimum average in bytes per second from then on.
    static let slowSecondsMax = 5.0
    static let bytesPerSecondMin = 1024.0

    private struct Arrived {
        var result = CallResult()
        var heads = 0
        var bodyBegan = NIODeadline.distantFuture
    }

    private let bytesMax: Int
    private let slowSecondsMax: Double
    private let arrived = Mutex(Arrived())

    init(bytesMax: Int, slowSecondsMax: Double) { (self.bytesMax, self.slowSecondsMax) = (bytesMax, slowSecondsMax) }

    var result: CallResult { arrived.withLock { $0.result } }

    /// Whether the answer came from an address other than the one asked.
    var followedRedirect: Bool { arrived.withLock { $0.heads > 1 } }

    func didVisitURL(task: HTTPClient.Task<Void>, _ request: HTTPClient.Request, _ head: HTTPResponseHead) {
        arrived.withLock { $0.heads += 1 }
    }

    func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
        let announced = head.headers.first(name: "content-length").flatMap { Int($0) } ?? 0
        arrived.withLock { arrived in
            arrived.result.httpStatus = Int(head.status.code)
            arrived.result.headers = head.headers
            arrived.bodyBegan = .now()
            // An announced length does not justify reserving much memory before the bytes arrive.
            if announced <= bytesMax { arrived.result.body.reserveCapacity(min(max(announced, 0), 1 << 20)) }
        }
        return announced > bytesMax
            ? task.eventLoop.makeFailedFuture(TooLarge()) : task.eventLoop.makeSucceededVoidFuture()
    }

    func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
        let refusal: (any Error)? = arrived.withLock { arrived in
            guard arrived.result.body.count + buffer.readableBytes <= bytesMax else {
                arrived.result.body = []
                return TooLarge()
            }
            arrived.result.body.append(contentsOf: buffer.readableBytesView)
            let seconds = Double((NIODeadline.now() - arrived.bodyBegan).nanoseconds) / 1e9
            let isSlow = Double(arrived.result.body.count) < seconds * Self.bytesPerSecondMin
            return isSlow && seconds > slowSecondsMax ? TooSlow() : nil
        }
        return refusal.map { task.eventLoop.makeFailedFuture($0) } ?? task.eventLoop.makeSucceededVoidFuture()
    }

    func didFinishRequest(task: HTTPClient.Task<Void>) throws {}
}

/// Reads how long a server asks clients to wait: the header `Retry-After` with seconds or an HTTP date (RFC 9110,
/// section 10.2.3), or with an instant in milliseconds since 1970, as Apple's newer API sends it.
package enum RetryAfter {
    /// A number this large is not a delay but an instant, in seconds or in milliseconds since 1970.
    static let momentSecondsMin = 1e9
    static let momentMillisecondsMin = 1e11

    /// Returns the seconds to wait, the longest of several values and never negative; nil if no value is readable.
    /// Instants are compared with the server's own clock (the header `Date`), and with `now` only without that header.
    package static func seconds(in headers: HTTPHeaders, now: Date) -> Double? {
        let clock = headers.first(name: "date").flatMap(date) ?? now
        return headers[canonicalForm: "retry-after"].compactMap { seconds(String($0), since: clock) }.max()
            .map { max(0, $0) } ?? dated(headers, since: clock)
    }

    /// Reads HTTP dates from unsplit headers: a date contains a comma, at which lists are split.
    private static func dated(_ headers: HTTPHeaders, since clock: Date) -> Double? {
        headers["retry-after"].compactMap(date).map { max(0, $0.timeIntervalSince(clock)) }.max()
    }

    private static func seconds(_ text: String, since clock: Date) -> Double? {
        let trimmed = text.trimmingCharacters(in: .whitespaces)
        guard !trimmed.isEmpty, trimmed.utf8.allSatisfy({ $0 >= 0x2B && $0 <= 0x39 && $0 != 0x2F }),
            let number = Double(trimmed), number.isFinite
        else { return nil }
        if number >= momentMillisecondsMin { return number / 1000 - clock.timeIntervalSince1970 }
        if number >= momentSecondsMin { return number - clock.timeIntervalSince1970 }
        return number
    }

    /// Reads an HTTP date in any of its three forms.
    private static func date(_ text: String) -> Date? {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        return ["EEE, dd MMM yyyy HH:mm:ss zzz", "EEEE, dd-MMM-yy HH:mm:ss zzz", "EEE MMM d HH:mm:ss yyyy"].lazy
            .compactMap { form in
                formatter.dateFormat = form
                return formatter.date(from: text.trimmingCharacters(in: .whitespaces))
            }.first
    }
}
