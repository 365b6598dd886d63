import Foundation
import Hummingbird

/// One path and what answers each of its methods; OPTIONS tells which, and every other method is answered with 405.
struct Route: Sendable {
    typealias Answer = @Sendable (Request, BasicRequestContext) async throws -> Response

    /// The path with its parameters in braces.
    let path: String
    /// What answers, by method.
    let answers: [HTTPRequest.Method: Answer]

    /// Every method of RFC 9110 and RFC 5789, and QUERY.
    private static let knownMethods: [HTTPRequest.Method] =
        [.get, .head, .post, .put, .patch, .delete, .options, .trace, .connect]
        + [HTTPRequest.Method(rawValue: "QUERY")].compactMap { $0 }

    /// A path with one method. HEAD follows GET by itself.
    init(_ method: HTTPRequest.Method, _ path: String, _ answer: @escaping Answer) {
        self.path = path
        answers = [method: answer]
    }

    /// The methods that are answered, as the `Allow` header lists them.
    private var allowed: [HTTPRequest.Method] {
        Self.knownMethods.filter { answers[$0] != nil || $0 == .options || ($0 == .head && answers[.get] != nil) }
    }

    /// Makes the router answer this path.
    func add(to router: Router<BasicRequestContext>) {
        for (method, answer) in answers {
            router.on(RouterPath(path), method: method) { request, context in try await answer(request, context) }
        }
        let allow = allowed.map(\.rawValue).joined(separator: ", ")
        router.on(RouterPath(path), method: .options) { _, _ in
            Response(status: .noContent, headers: [.allow: allow])
        }
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
