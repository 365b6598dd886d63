import Foundation
import Hummingbird
import HummingbirdTesting
import Subscriptions
import TestSupport
import Testing
import Tracking

@testable import Server

private let servedLedger = OncePerSuite(ServedLedger.with)

@Suite("Every described route reads its request in the same way", servedLedger) struct RequestReadingTests {
    private typealias Operation = Description.Operation

    private static let uuid = "6f1f6a0e-5a51-4a43-9d35-1d3b7f4a1b11"

    /// A text that a parameter may have.
    private static func sample(_ parameter: Description.Parameter) -> String {
        if parameter.name == "bundle" { return ServedLedger.app.text }
        return ["1", uuid, "Production", "due", "paid", "active", "Production.1", "2026-11-20T12:00:00Z"]
            .first { allows($0, parameter.schema) } ?? ""
    }

    /// Whether a text fits the schema of a parameter; of the keywords, those that parameters use.
    private static func allows(_ text: String, _ schema: [String: Any]) -> Bool {
        if let words = schema["enum"] as? [String] { return words.contains(text) }
        if let pattern = schema["pattern"] as? String, (try? Regex(pattern).wholeMatch(in: text)) == nil {
            return false
        }
        if schema["format"] as? String == "uuid" { return UUID(uuidString: text) != nil }
        if schema["type"] as? String == "integer" {
            guard text.wholeMatch(of: /-?(0|[1-9][0-9]*)/) != nil, let number = Int64(text) else { return false }
            return number >= schema["minimum"] as? Int ?? .min && number <= schema["maximum"] as? Int ?? .max
        }
        let length = text.unicodeScalars.count
        return length >= schema["minLength"] as? Int ?? 0 && length <= schema["maxLength"] as? Int ?? .max
    }

    /// The path and the query of an operation, with a sample for each parameter that it needs, but the given texts.
    private static func address(_ operation: Operation, _ given: [String: String] = [:]) -> String {
        var path = operation.path
        var query: [String] = []
        for parameter in operation.parameters {
            let text = given[parameter.name] ?? sample(parameter).percentEncoded
            switch parameter.place {
            case "path": path = path.replacing("{\(parameter.name)}", with: text)
            case "query" where parameter.isRequired || given[parameter.name] != nil:
                query.append("\(parameter.name)=\(text)")
            default: break
            }
        }
        return query.isEmpty ? path : path + "?" + query.joined(separator: "&")
    }

    private static func json(_ value: Any) throws -> String {
        let data = try JSONSerialization.data(
            withJSONObject: value, options: [.fragmentsAllowed, .withoutEscapingSlashes])
        return String(decoding: data, as: UTF8.self)
    }

    private static func send(
        _ operation: Operation, to path: String, body: String? = nil, by client: any TestClientProtocol, secret: String
    ) async throws -> TestResponse {
        let method = try #require(HTTPRequest.Method(rawValue: operation.method.uppercased()))
        return try await client.send(
            method, path, secret: secret, body: try body ?? operation.body.map(json),
            headers: [.idempotencyKey: UUID().uuidString])
    }

    /// Expects that an operation refuses a path.
    private static func expect(
        _ kind: String, status: Int, _ operation: Operation, at path: String, body: String? = nil,
        by client: any TestClientProtocol, secret: String
    ) async throws {
        let answer = try await send(operation, to: path, body: body, by: client, secret: secret)
        let isRefused = answer.status.code == status && answer.text.contains("urn:perennial:problem:\(kind)\"")
        #expect(isRefused, "\(operation.method) \(path) \(body ?? ""): \(answer.status) \(answer.text)")
    }

    @Test("Each answer is described: its status, its type and its members") func answers() async throws {
        try await ServedLedger.with { served in
            let tracker = Tracker.quiet(served.ledger, appStore: .answering(Sample.verified()))
            try await Serving.with(tracker) { client in
                let sent = try await client.send(
                    .post, Serving.receipts, secret: served.secret,
                    body: Sample.upload(Sample.receipt(), customer: "1"))
                #expect(sent.status == .ok)
                let description = try Description()
                var answered = 0
                for operation in description.operations {
                    let answer = try await Self.send(
                        operation, to: Self.address(operation), by: client, secret: served.secret)
                    if answer.status.code < 300 { answered += 1 }
                    let faults = try description.faults(of: answer, to: operation)
                    #expect(faults.isEmpty, "\(faults.joined(separator: "\n")): \(answer.text)")
                }
                #expect(answered > 10)
            }
        }
    }

    @Test("An app that is not registered, or not any more, is unknown to every route that takes one")
    func unknownApps() async throws {
        try await ServedLedger.with { served in
            let removed = BundleID("com.example.other")
            let decision = try ManualDecision(by: "kim", because: "a test")
            try await served.ledger.apps.remove(removed, deciding: decision)
            try await Serving.with(Tracker.quiet(served.ledger)) { client in
                let operations = try Description().operations.filter {
                    $0.path.contains("{bundle}") || $0.body?["app"] != nil
                }
                #expect(operations.count > 20)
                for operation in operations {
                    var bodies = [operation.body]
                    if operation.members["operationId"] as? String == "createReceipt" {
                        bodies.append(["customer": "kim", "receipt": Sample.receipt(), "order": Self.uuid])
                        bodies.append(["customer": "kim", "transaction_id": "1"])
                        bodies.append(["customer": "kim", "signed_transaction": "a.b.c"])
                    }
                    for (app, body) in ["com.example.none", removed.text].flatMap({ app in bodies.map { (app, $0) } }) {
                        let text = try body.map(Self.json)?.replacing(ServedLedger.app.text, with: app)
                        try await Self.expect(
                            "unknown-app", status: 404, operation, at: Self.address(operation, ["bundle": app]),
                            body: text, by: client, secret: served.secret)
                    }
                }
            }
        }
    }

    /// Texts of many forms. What a parameter may be, its schema says.
    private static let texts =
        ["", "0", "1", "01", "+5", "-1", "1.0", "1e3", "x", "\u{661}", "999999999999999999", "1000000000000000000"]
        + ["Production", "production", "due", "active", "paid", "Production.1", "Moon.1", uuid, uuid.uppercased()]
        + ["{\(uuid)}", "2026-11-20T12:00:00Z", "2026-11-20t12:00+01", "2026-11-20T12:00:00", "2026-11-20"]
        + [255, 256, 1000, 1001, 4096, 4097].map { String(repeating: "a", count: $0) }

    @Test("A query is refused if its schema refuses it, and not otherwise") func queries() async throws {
        try await servedLedger.use { served in
            try await Serving.with(Tracker.quiet(served.ledger)) { client in
                for operation in try Description().operations {
                    for parameter in operation.parameters where parameter.place == "query" {
                        for text in Self.texts {
                            let isAllowed = Self.allows(text, parameter.schema)
                            // Nothing comes that would end the wait.
                            if parameter.name == "wait", isAllowed, text != "0" { continue }
                            let path = Self.address(operation, [parameter.name: text.percentEncoded])
                            let answer = try await Self.send(operation, to: path, by: client, secret: served.secret)
                            #expect(
                                (answer.status == .badRequest) != isAllowed && answer.status.code < 500,
                                "\(path.prefix(120)): \(answer.status) \(answer.text)")
                        }
                    }
                }
            }
        }
    }

    @Test("An address that its readers may take for different ones is refused") func addresses() async throws {
        try await servedLedger.use { served in
            try await Serving.with(Tracker.quiet(served.ledger)) { client in
                for operation in try Description().operations where operation.path.hasPrefix("/v1/") {
                    let path = Self.address(operation)
                    let mark = path.contains("?") ? "&" : "?"
                    var refused = [path + "#", path + "\(mark)x=%zz", path + "\(mark)x=#y", path + "\(mark)%FF=1"]
                    if operation.members["operationId"] as? String != "createNotification" {
                        refused.append(path + "\(mark)colour=red")
                    }
                    for parameter in operation.parameters where parameter.place != "header" {
                        for odd in ["%", "%zz", "%f", "%FF", "%C3%28", "%ED%A0%80", "a%00b"] {
                            refused.append(Self.address(operation, [parameter.name: odd]))
                        }
                        if parameter.place == "query" {
                            let text = Self.sample(parameter).percentEncoded
                            refused.append(
                                Self.address(operation, [parameter.name: "\(text)&\(parameter.name)=\(text)"]))
                        }
                    }
                    for path in refused {
                        try await Self.expect(
                            "invalid", status: 400, operation, at: path, by: client, secret: served.secret)
                    }
                    let parts = path.split(separator: "?", maxSplits: 1)
                    let slashed = ([parts[0] + "/"] + parts.dropFirst()).joined(separator: "?")
                    try await Self.expect(
                        "not-found", status: 404, operation, at: slashed, by: client, secret: served.secret)
                }
            }
        }
    }

    @Test("A body that its readers may take for different ones is refused before the database is asked")
    func bodies() async throws {
        try await Serving.withoutDatabase { client in
            let operations = try Description().operations.filter {
                $0.body != nil && $0.members["operationId"] as? String != "createNotification"
            }
            #expect(operations.count > 15)
            for operation in operations {
                let members = try #require(operation.body)
                let text = try Self.json(members)
                let inner = text.dropFirst().dropLast()
                let comma = inner.isEmpty ? "" : ","
                var refused = [
                    "", text + "x", text + text, "[\(text)]", "null", "{\(inner),}", "{\(inner)\(comma)\"colour\":1}",
                    "{\(inner)\(comma)\"colour\":\(String(repeating: "[", count: 100_000))",
                ]
                for (name, value) in members { refused.append("{\(inner),\"\(name)\":\(try Self.json(value))}") }
                for body in refused {
                    try await Self.expect(
                        "invalid", status: 400, operation, at: Self.address(operation), body: body, by: client,
                        secret: TestKey.admin.secret)
                }
                let wide = try #require(text.data(using: .utf16))
                let method = try #require(HTTPRequest.Method(rawValue: operation.method.uppercased()))
                let answer = try await client.executeRequest(
                    uri: Self.address(operation), method: method,
                    headers: [.authorization: "Bearer \(TestKey.admin.secret)"], body: ByteBuffer(bytes: wide))
                try expectProblem(answer, "invalid", status: 400)
            }
        }
    }
}
