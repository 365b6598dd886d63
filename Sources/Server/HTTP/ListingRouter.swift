import Hummingbird

/// A router that also answers the methods that a path does not serve: OPTIONS lists the others, and the rest gets 405.
/// Hummingbird's own router answers 404 to them.
final class ListingRouter: RouterMethods, HTTPResponderBuilder {
    typealias Context = CallerContext

    /// Every method of RFC 9110 and RFC 5789, and QUERY.
    private static let knownMethods: [HTTPRequest.Method] =
        [.get, .head, .post, .put, .patch, .delete, .options, .trace, .connect]
        + [HTTPRequest.Method(rawValue: "QUERY")].compactMap { $0 }

    private let router = Router(context: CallerContext.self, options: .autoGenerateHeadEndpoints)
    /// The methods of each path whose other methods have no answer yet.
    private var methods: [String: Set<HTTPRequest.Method>] = [:]

    /// Adds middleware for the routes that are added after it.
    @discardableResult
    func add(middleware: any MiddlewareProtocol<Request, Response, CallerContext>) -> Self {
        router.add(middleware: middleware)
        return self
    }

    /// Adds a route. GET adds HEAD by itself.
    @discardableResult
    func on<Responder: HTTPResponder>(
        _ path: RouterPath, method: HTTPRequest.Method, responder: Responder
    ) -> Self where Responder.Context == CallerContext {
        methods[path.description, default: []].insert(method)
        router.on(path, method: method, responder: responder)
        return self
    }

    /// Returns the responder, which answers every known method of every path.
    func buildResponder() -> RouterResponder<CallerContext> {
        for (path, served) in methods { answerOthers(than: served, at: RouterPath(path)) }
        methods = [:]
        return router.buildResponder()
    }

    private func answerOthers(than served: Set<HTTPRequest.Method>, at path: RouterPath) {
        let allowed = Self.knownMethods.filter {
            served.contains($0) || $0 == .options || ($0 == .head && served.contains(.get))
        }
        let allow = allowed.map(\.rawValue).joined(separator: ", ")
        router.on(path, method: .options) { _, _ in Response(status: .noContent, headers: [.allow: allow]) }
        for method in Self.knownMethods where !allowed.contains(method) {
            router.on(path, method: method) { _, _ -> Response in
                throw Problem(.methodNotAllowed, "Here only \(allow) is answered.", headers: [.allow: allow])
            }
        }
    }
}
