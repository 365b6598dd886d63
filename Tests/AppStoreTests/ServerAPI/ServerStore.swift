import AppStoreSimulator
import Crypto
import Foundation
import Hummingbird
import NIOCore
import Testing

@testable import AppStore

/// A Server API over HTTP that answers by a script, with texts of an authority of its own.
struct ServerStore {
    static let bundleID = "com.example.app"
    static let now = Int64(Date().timeIntervalSince1970) * 1_000

    let authority: SigningAuthority
    let key = P256.Signing.PrivateKey()

    init() throws { authority = try SigningAuthority() }

    /// A signed transaction; `more` replaces or adds claims.
    func transaction(_ id: String = "1", _ more: [String: Any] = [:]) throws -> String {
        let claims: [String: Any] = [
            "transactionId": id, "originalTransactionId": "1", "bundleId": Self.bundleID, "productId": "monthly",
            "environment": "Production", "purchaseDate": Self.now - 1_000, "expiresDate": Self.now + 86_400_000,
            "signedDate": Self.now,
        ]
        return try sign(claims.merging(more) { $1 })
    }

    func sign(_ claims: [String: Any]) throws -> String {
        try authority.sign(Array(try JSONSerialization.data(withJSONObject: claims, options: .sortedKeys)))
    }

    /// What a script answers that knows one text: statuses of it, and a history that holds it.
    func both(_ asked: Asked, _ text: String, _ more: [String: Any] = [:]) throws -> Response {
        let isOfStatuses = asked.path.contains("subscriptions")
        return .text(
            try isOfStatuses ? statuses(text, status: 1, more) : page([text], revision: "r1", more))
    }

    /// A page of a history.
    func page(
        _ texts: [String], revision: String = "r1", hasMore: Bool = false, _ more: [String: Any] = [:]
    ) throws -> String {
        let page: [String: Any] = [
            "bundleId": Self.bundleID, "environment": "Production", "revision": revision, "hasMore": hasMore,
            "signedTransactions": texts,
        ]
        return try json(page.merging(more) { $1 })
    }

    /// An answer of statuses about one subscription.
    func statuses(_ text: String?, status: Int = 1, _ more: [String: Any] = [:]) throws -> String {
        let rows: [[String: Any]] =
            text.map {
                [["originalTransactionId": "1", "status": status, "signedTransactionInfo": $0]]
            } ?? []
        let answer: [String: Any] = [
            "bundleId": Self.bundleID, "environment": "Production",
            "data": rows.isEmpty ? [] : [["subscriptionGroupIdentifier": "g", "lastTransactions": rows]],
        ]
        return try json(answer.merging(more) { $1 })
    }

    private func json(_ object: [String: Any]) throws -> String {
        String(decoding: try JSONSerialization.data(withJSONObject: object, options: .sortedKeys), as: UTF8.self)
    }

    /// An error of Apple's.
    static func error(_ code: Int, headers: HTTPFields = [:]) -> Response {
        .text(
            #"{"errorCode":\#(code),"errorMessage":"no"}"#, HTTPResponse.Status(code: code / 10_000), headers)
    }

    /// Serves the script while one request is made; returns the answer, and what was asked.
    func ask(
        _ request: ServerRequest? = nil, pagesMax: Int = 50, times: Int = 1,
        _ script: @escaping @Sendable (Asked) throws -> Response
    ) async throws -> (answers: [AppStoreAnswer], asked: [Asked]) {
        let store = ScriptedHTTPStore()
        let verifier = SignedTextVerifier(trusting: try SigningRoot(der: authority.certificates[2]))
        let request = request ?? self.request()
        let (answers, into) = AsyncStream<AppStoreAnswer>.makeStream()
        try await store.serving {
            try script($0)
        } _: { options in
            defer { into.finish() }
            try await options.withClient { client in
                let base = options.productionURL.replacing("/production", with: "")
                var options = ServerAPIOptions(
                    productionURL: base, sandboxURL: base + "/sandbox/", deadline: .seconds(30))
                options.pagesMax = pagesMax
                let server = ServerAPIClient.live(options, client: client, verifier: verifier)
                for _ in 0..<times { into.yield(await server.read(request)) }
            }
        }
        return (await answers.reduce(into: []) { $0.append($1) }, store.asked)
    }

    /// A request by the store's key.
    func request(
        from revision: String? = nil, isFirstSight: Bool = true, sandboxAllowed: Bool = true
    ) -> ServerRequest {
        ServerRequest(
            key: ServerKey(pem: key.pemRepresentation, id: "K1", issuer: "issuer", bundleID: Self.bundleID),
            appleAppID: 7, transactionID: "1", revision: revision, isFirstSight: isFirstSight,
            sandboxAllowed: sandboxAllowed)
    }
}
