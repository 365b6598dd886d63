package import AsyncHTTPClient
import Foundation
import NIOCore

extension AppStoreClient {
    /// Returns a client of the real App Store over HTTP.
    ///
    /// Switches store on 21007 or 21008 at most once, tries the previous secret once on 21004, always requests full
    /// histories, keeps no cookies. If Apple sends a `Sunset` or `Deprecation` header, `note` gets a sentence for the
    /// operator, once per announcement.
    ///
    /// - Parameters:
    /// - options: addresses and limits.
    /// - client: made with `options.clientConfiguration` on one event loop; the caller shuts it down. Several loops are
    ///   not safe: async-http-client 1.37.0 stops the process if a connection closes between an early answer and the end
    ///   of its request.
    /// - server: the client of the Server API.
    /// - note: called from any thread; never gets a secret or a receipt.
    package static func live(
        _ options: AppStoreOptions, client: HTTPClient, server: ServerAPIClient = .none,
        note: @escaping @Sendable (String) -> Void
    ) -> AppStoreClient {
        let caller = HTTPCall(client: client, responseBytesMax: options.responseBytesMax)
        let notes = RetirementNotes(note: note)
        return AppStoreClient(server: server) { request in
            await LiveCheck(options: options, caller: caller, notes: notes, request: request).run()
        }
    }
}

/// One `verify`: up to three calls under one deadline.
struct LiveCheck: Sendable {
    let options: AppStoreOptions
    let caller: HTTPCall
    let notes: RetirementNotes
    let request: AppStoreRequest

    func run() async -> AppStoreAnswer {
        let start = ContinuousClock.now
        let end = start + options.deadline
        var routing = StoreRouting(request)
        let receiptBytes = request.receipt.utf8.count
        guard receiptBytes <= options.requestBytesMax else {
            let refused = CallResult.failed(CallFailure.requestTooLarge(receiptBytes, limit: options.requestBytesMax))
            return answer(refused, nil, routing, calls: 0, since: start)
        }
        var calls = 0
        while true {
            guard calls == 0 || ContinuousClock.now < end else {
                return answer(.failed(CallFailure.noTimeLeft), nil, routing, calls: calls, since: start)
            }
            calls += 1
            var result = await caller.call(
                options.url(of: routing.environment), sending: body(routing.password), until: end)
            notes.look(at: result.headers, from: routing.environment, hiding: secrets)
            let asked = routing
            // A genuine receipt ends the questions; its body is decoded when it is asked for.
            if let outline = genuineOutline(of: result) {
                return answer(unread: result, outline, asked, calls: calls, since: start)
            }
            let response = decode(&result)
            guard response != nil, routing.goesOn(after: response?.status) else {
                return answer(result, response, asked, calls: calls, since: start)
            }
        }
    }

    private var secrets: Secrets { Secrets(current: request.secret, previous: request.previousSecret) }

    /// Always requests full histories: otherwise an expired sandbox subscription may return an old row instead of the
    /// newest.
    private func body(_ password: String?) -> ByteBuffer {
        let secret = password.map { #""password":\#(JSONEscapes.quoted($0)),"# } ?? ""
        let end = #",\#(secret)"exclude-old-transactions":false}"#
        var body = ByteBufferAllocator().buffer(capacity: request.receipt.utf8.count + end.utf8.count + 20)
        body.writeString(#"{"receipt-data":"#)
        body.writeString(JSONEscapes.quoted(request.receipt))
        body.writeString(end)
        return body
    }

    private func genuineOutline(of result: CallResult) -> AnswerOutline? {
        guard result.failure == nil, result.httpStatus == 200 else { return nil }
        let outline = AnswerOutline(of: result.body)
        return outline.saysGenuine ? outline : nil
    }

    private func decode(_ result: inout CallResult) -> VerifyReceiptResponse? {
        guard result.failure == nil else { return nil }
        do throws(AnswerUnreadable) {
            return try VerifyReceiptResponse(parsing: result.body)
        } catch {
            result.failure = "The store answered HTTP 200 with \(error.reason); ask again later."
            return nil
        }
    }

    private func answer(
        unread result: CallResult, _ outline: AnswerOutline, _ asked: StoreRouting, calls: Int,
        since start: ContinuousClock.Instant
    ) -> AppStoreAnswer {
        AppStoreAnswer(
            environment: asked.environment, unread: result.body, outline: outline, calls: calls,
            usedPreviousSecret: asked.usesPreviousSecret,
            elapsedMilliseconds: start.duration(to: .now).wholeMilliseconds,
            correlationID: result.correlationID.map { secrets.hidden(in: $0) })
    }

    private func answer(
        _ result: CallResult, _ response: VerifyReceiptResponse?, _ asked: StoreRouting, calls: Int,
        since start: ContinuousClock.Instant
    ) -> AppStoreAnswer {
        AppStoreAnswer(
            environment: asked.environment, httpStatus: result.httpStatus, body: result.body, response: response,
            failure: result.failure.map { secrets.hidden(in: $0) },
            failureDetail: result.failureDetail.map { secrets.hidden(in: $0) }, calls: calls,
            usedPreviousSecret: asked.usesPreviousSecret,
            elapsedMilliseconds: start.duration(to: .now).wholeMilliseconds,
            correlationID: result.correlationID.map { secrets.hidden(in: $0) },
            retryAfterSeconds: result.httpStatus == 200 ? nil : RetryAfter.seconds(in: result.headers, now: Date()))
    }
}
