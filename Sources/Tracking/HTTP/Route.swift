import Foundation
import Hummingbird

/// One path and what answers each of its methods; every other method is answered with 405.
struct Route: Sendable {
    typealias Answer = @Sendable (Request, BasicRequestContext) async throws -> Response

    /// The path with its parameters in braces.
    let path: String
    /// What answers, by method.
    let answers: [HTTPRequest.Method: Answer]

    private static let knownMethods: [HTTPRequest.Method] = [.get, .head, .post, .put, .patch, .delete, .options]

    /// A path with one method. HEAD follows GET by itself.
    init(_ method: HTTPRequest.Method, _ path: String, _ answer: @escaping Answer) {
        self.path = path
        answers = [method: answer]
    }

    private init(_ path: String, _ answers: [HTTPRequest.Method: Answer]) {
        self.path = path
        self.answers = answers
    }

    /// The same path with another route's methods beside its own.
    func joined(with other: Route) -> Route {
        Route(path, answers.merging(other.answers) { own, _ in own })
    }

    /// The methods that are answered, as the `Allow` header lists them.
    private var allowed: [HTTPRequest.Method] {
        Self.knownMethods.filter { answers[$0] != nil || ($0 == .head && answers[.get] != nil) }
    }

    /// Makes the router answer this path.
    func add(to router: Router<BasicRequestContext>) {
        for (method, answer) in answers {
            router.on(RouterPath(path), method: method) { request, context in try await answer(request, context) }
        }
        let allow = allowed.map(\.rawValue).joined(separator: ", ")
        for method in Self.knownMethods where !allowed.contains(method) {
            router.on(RouterPath(path), method: method) { _, _ -> Response in
                throw Problem(.methodNotAllowed, "Here only \(allow) is answered.", headers: [.allow: allow])
            }
        }
    }
}

extension Parameters {
    /// A path parameter with its percent encoding undone.
    ///
    /// Refused are what is not UTF-8, and NUL, where PostgreSQL's text would end.
    func decoded(_ name: String) throws -> String {
        guard let text = try require(name).removingPercentEncoding, !text.unicodeScalars.contains("\0") else {
            throw Problem(.invalid, "The path's \(name) is not percent-encoded UTF-8 text.")
        }
        return text
    }
}
