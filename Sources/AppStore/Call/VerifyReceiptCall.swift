package import AsyncHTTPClient
import Foundation
import JSON
import NIOCore
import NIOHTTP1
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
