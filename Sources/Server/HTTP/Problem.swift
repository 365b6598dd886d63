import AppStore
import Hummingbird
import JSON
import Logging
import Subscriptions
import Synchronization
import Tracking

/// An error in the form of RFC 9457: `application/problem+json`.
struct Problem: Error, Sendable {
    let kind: Kind
    /// One sentence that says what failed, where, and what to do, without a secret, a receipt or an internal detail.
    let detail: String
    var headers: HTTPFields = [:]
    /// Members of the body beyond those of the RFC.
    var members: [String: JSONValue] = [:]

    /// The longest detail, in characters. A longer one is cut, because it only repeats the caller's own input.
    private static let detailCharactersMax = 600

    init(_ kind: Kind, _ detail: String, headers: HTTPFields = [:], members: [String: JSONValue] = [:]) {
        self.kind = kind
        let detail = detail.runnableHere
        let isLong = detail.unicodeScalars.count > Self.detailCharactersMax
        self.detail = isLong ? String(detail.unicodeScalars.prefix(Self.detailCharactersMax)) + "…" : detail
        self.headers = headers
        self.members = members
    }

    func response(requestID: String) -> Response {
        var fields = headers
        fields[.contentType] = "application/problem+json"
        return Response(json(requestID: requestID), status: kind.status, headers: fields)
    }

    func json(requestID: String) -> JSONValue {
        var body: [String: JSONValue] = [
            "type": .string("urn:perennial:problem:\(kind.rawValue)"),
            "title": .string(kind.title),
            "status": .integer(Int64(kind.status.code)),
            "detail": .string(detail),
            "request_id": .string(requestID),
        ]
        body.merge(members) { own, _ in own }
        return .object(body)
    }

    static func unknownApp(_ bundleID: BundleID) -> Problem {
        Problem(.unknownApp, "No app has the bundle id \(bundleID); register it with `perennial app add`.")
    }

    /// Returns the problem for a dependency that is temporarily unavailable. `Retry-After` is at least one second.
    static func unavailable(_ detail: String, retryAfterSeconds: Int) -> Problem {
        Problem(.unavailable, detail, headers: [.retryAfter: String(max(1, retryAfterSeconds))])
    }

    /// Returns the problem for a call that a rate limit holds back for some seconds.
    static func tooMany(_ detail: String, _ seconds: Double) -> Problem {
        Problem(.tooMany, detail, headers: [.retryAfter: String(Int(seconds.rounded(.up)))])
    }
}

extension Problem {
    /// The kinds of problem. The raw value ends the problem's `type`, which programs may compare.
    enum Kind: String, CaseIterable, Sendable {
        case invalid
        case unauthenticated
        case forbidden
        case notFound = "not-found"
        case unknownApp = "unknown-app"
        case methodNotAllowed = "method-not-allowed"
        case timedOut = "timed-out"
        case conflict
        case otherFeed = "other-feed"
        case proofRefused = "proof-refused"
        case tooLarge = "too-large"
        case notAReceipt = "not-a-receipt"
        case receiptRejected = "receipt-rejected"
        case unsupportedMedia = "unsupported-media"
        case tooMany = "too-many"
        case failed
        case unavailable

        var status: HTTPResponse.Status { answer.status }
        /// A short title that is the same for every occurrence.
        var title: String { answer.title }

        private var answer: (status: HTTPResponse.Status, title: String) {
            switch self {
            case .invalid: (.badRequest, "The request cannot be used")
            case .unauthenticated: (.unauthorized, "An API key is needed")
            case .forbidden: (.forbidden, "The API key may not do this")
            case .notFound: (.notFound, "There is nothing here")
            case .unknownApp: (.notFound, "The app is not registered")
            case .methodNotAllowed: (.methodNotAllowed, "The method is not answered here")
            case .timedOut: (.requestTimeout, "The request took too long to arrive")
            case .conflict: (.conflict, "What is stored rules this out")
            case .otherFeed: (.conflict, "The cursor is of another feed")
            case .proofRefused: (.forbidden, "The proof is not of this order")
            case .tooLarge: (.contentTooLarge, "The body is too large")
            case .notAReceipt: (.unprocessableContent, "This is not a receipt")
            case .receiptRejected: (.unprocessableContent, "Apple does not vouch for the receipt")
            case .unsupportedMedia: (.unsupportedMediaType, "The body is not JSON")
            case .tooMany: (.tooManyRequests, "Too many requests")
            case .failed: (.internalServerError, "Something went wrong here")
            case .unavailable: (.serviceUnavailable, "Try again later")
            }
        }
    }

    /// Creates the problem that a caller sees for an error. Details that the caller must not know stay in the log.
    init(telling error: any Error) {
        switch error {
        case let problem as Problem: self = problem
        case let error as ReceiptDataError: self = Problem(.notAReceipt, error.description)
        case let refusal as UploadRefusal:
            self = Problem(.receiptRejected, refusal.sentence, members: UploadResult.refused(.vain, order: nil).members)
        case let failure as SupportFailure:
            self =
                failure.isRefusal
                ? Problem(.invalid, failure.sentence) : .unavailable(failure.sentence, retryAfterSeconds: 60)
        case let error as LedgerError: self = Problem(telling: error)
        case let error as DecodingError: self = Problem(telling: error)
        case let error as any HTTPResponseError: self = Problem(status: error.status)
        default:
            let seconds = error.storageFailure?.retryAfterSeconds
            self =
                seconds.map { .unavailable("The database cannot answer at the moment.", retryAfterSeconds: $0) }
                ?? .unexplained
        }
    }

    private static let unexplained = Problem(
        .failed, "The request failed; the server's log has the reason under this request id.")

    private init(telling error: LedgerError) {
        switch error.kind {
        case .notFound: self = Problem(.notFound, error.message)
        case .unknownApp(let bundleID): self = .unknownApp(bundleID)
        case .exists: self = Problem(.conflict, error.message)
        case .invalid: self = Problem(.invalid, error.message)
        case .busy: self = .unavailable(error.message, retryAfterSeconds: 1)
        case .exhausted(let seconds):
            self = Problem(.tooMany, error.message, headers: [.retryAfter: String(seconds)])
        case .mismatch:
            self = .unavailable(
                "The server cannot use its database as it is set up; the server's log has the reason.",
                retryAfterSeconds: 30)
        }
    }

    /// Names the field but never repeats a value of the body, because a value may be a receipt.
    private init(telling error: DecodingError) {
        let detail =
            switch error {
            case .keyNotFound(let key, let context): "The body's \(Self.place(context.codingPath + [key])) is missing."
            case .valueNotFound(_, let context): "The body's \(Self.place(context.codingPath)) must not be null."
            case .typeMismatch(_, let context): "The body's \(Self.place(context.codingPath)) has the wrong type."
            case .dataCorrupted(let context) where !context.codingPath.isEmpty:
                "The body's \(Self.place(context.codingPath)) "
                    + ((context.underlyingError as? LedgerError)?.message ?? "cannot be used.")
            case .dataCorrupted: "The body is not JSON."
            @unknown default: "The body cannot be used."
            }
        self = Problem(.invalid, detail)
    }

    static func place(_ path: [any CodingKey]) -> String {
        path.isEmpty ? "outermost value" : path.map(\.stringValue).joined(separator: ".")
    }

    private init(status: HTTPResponse.Status) {
        switch status {
        case .notFound: self = Problem(.notFound, "Nothing answers at this path; GET /openapi.yaml lists what does.")
        case .contentTooLarge: self = Problem(.tooLarge, "The body is larger than this server reads.")
        case .badRequest: self = Problem(.invalid, "The request cannot be read.")
        default: self = .unexplained
        }
    }
}

/// Middleware around every route: it turns each error into a problem, counts requests and their durations by route, and
/// logs one line per request at debug level.
///
/// Counters and line name the route, because a path contains a customer's id. Under `/admin` a problem is a page.
struct ProblemMiddleware: RouterMiddleware {
    var counters: RequestCounters?
    var servesAdmin = false

    nonisolated(nonsending) func handle(
        _ request: Request, context: CallerContext, next: (Request, CallerContext) async throws -> Response
    ) async throws -> Response {
        let start = ContinuousClock.now
        let requestID = request.headers.givenRequestID ?? RequestID.next()
        var context = context
        context.requestID = requestID
        var response: Response
        do {
            try request.requireWholePath()
            try request.requireReadableAddress()
            response = try await next(request, context)
        } catch {
            let problem = Problem(telling: error)
            log(error, as: problem, requestID, context.logger)
            response = try answer(problem, to: request, requestID)
        }
        response.headers[.requestID] = requestID
        let (elapsed, route) = (ContinuousClock.now - start, context.endpointPath ?? "none")
        counters?.count(.init(method: request.method, route: route, status: response.status.code), elapsed: elapsed)
        context.logger.debug(
            "answered",
            metadata: [
                "request_id": "\(requestID)", "method": "\(request.method.rawValue)", "route": "\(route)",
                "status": "\(response.status.code)", "elapsed_us": "\(elapsed.microseconds)",
            ])
        return response
    }

    private func answer(_ problem: Problem, to request: Request, _ requestID: String) throws -> Response {
        let path = request.uri.path
        guard servesAdmin, path == "/admin" || path.hasPrefix("/admin/") else {
            return problem.response(requestID: requestID)
        }
        // No route took the path: a page that finds nothing says so itself.
        let page = problem.kind == .notFound ? Problem(.notFound, "There is no page at this address.") : problem
        return try AdminPage.response(telling: page).asAdminPage
    }

    /// Logs an error that the server caused. An error that the caller caused gets no line of its own.
    private func log(_ error: any Error, as problem: Problem, _ requestID: String, _ logger: Logger) {
        switch problem.kind {
        case .failed: logger.error("a request failed", metadata: ["error": "\(error)", "request_id": "\(requestID)"])
        case .unavailable:
            logger.log(
                level: error.isLoggedElsewhere ? .debug : .warning, "a request could not be served",
                metadata: ["error": "\(error)", "request_id": "\(requestID)"])
        case .invalid, .unauthenticated, .forbidden, .notFound, .unknownApp, .methodNotAllowed, .timedOut, .conflict,
            .otherFeed, .proofRefused, .tooLarge, .notAReceipt, .receiptRejected, .unsupportedMedia, .tooMany:
            break
        }
    }
}

extension Duration {
    fileprivate var microseconds: Int64 {
        components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
    }
}

/// The ids of requests whose callers gave none.
enum RequestID {
    private static let latest = Atomic(UInt64.random(in: 0 ... .max))

    /// Returns a new id. They count from a random number on, so that those of two processes hardly ever meet.
    static func next() -> String { String(latest.wrappingAdd(1, ordering: .relaxed).newValue, radix: 16) }
}

extension HTTPFields {
    /// The id that the caller gave the request, if it is safe in a log and a header unchanged.
    var givenRequestID: String? {
        self[.requestID].flatMap { $0.isVisibleASCII(bytesMax: 128) ? $0 : nil }
    }
}
