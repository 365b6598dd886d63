import Hummingbird
import Logging
import Tracking

/// Middleware that turns every error into a problem and logs one line per request at debug level.
///
/// The line names the route instead of the path, because a path contains a customer's id. A problem of a path under
/// `/admin` is a page, where there are pages.
struct ProblemMiddleware: RouterMiddleware {
    /// Whether the server has pages.
    var servesAdmin = false

    func handle(
        _ request: Request, context: CallerContext,
        next: (Request, CallerContext) async throws -> Response
    ) async throws -> Response {
        let start = ContinuousClock.now
        let requestID = requestID(request, context)
        var context = context
        if request.headers.givenRequestID != nil { context.logger[metadataKey: Self.requestIDKey] = "\(requestID)" }
        var response: Response
        do {
            response = try await next(request, context)
        } catch {
            let problem = Problem(telling: error)
            log(error, as: problem, requestID, context.logger)
            response = try answer(problem, to: request, requestID)
        }
        response.headers[.requestID] = requestID
        context.logger.debug(
            "answered",
            metadata: [
                "method": "\(request.method.rawValue)", "route": "\(context.endpointPath ?? "none")",
                "status": "\(response.status.code)", "elapsed_us": "\((ContinuousClock.now - start).microseconds)",
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

    private static let requestIDKey = "hb.request.id"

    /// Returns the id that every log line of the request carries: the caller's, else the server's own. A logger that
    /// keeps no metadata has none; then the id is a new one.
    private func requestID(_ request: Request, _ context: CallerContext) -> String {
        request.headers.givenRequestID ?? context.logger[metadataKey: Self.requestIDKey]?.description
            ?? RequestID.random()
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
    /// Whole microseconds.
    fileprivate var microseconds: Int64 {
        components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
    }
}

extension HTTPFields.Element.Name {
    /// The header with the request's id in the caller's log and in ours.
    // The name is a token of RFC 9110, so the initializer cannot fail.
    // swift-format-ignore: NeverForceUnwrap
    static let requestID = Self("X-Request-Id")!
}

/// The ids of requests whose callers gave none.
enum RequestID {
    /// Returns a new random id.
    static func random() -> String { String(UInt64.random(in: 0 ... .max), radix: 16) }
}

extension HTTPFields {
    private static let requestIDCharactersMax = 128

    /// The id that the caller gave the request, if it is safe in a log and a header unchanged.
    var givenRequestID: String? {
        guard let id = self[.requestID], (1...Self.requestIDCharactersMax).contains(id.utf8.count),
            id.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        return id
    }
}
