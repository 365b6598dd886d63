import Foundation
import HTTPTypes
import HummingbirdTesting
import NIOCore
import Testing
import Yams

@testable import Server

/// The description of the API as YAML says it.
struct Description {
    /// One method of one path.
    struct Operation {
        let method: String
        let path: String
        let members: [String: Any]
        let parameters: [Parameter]
        /// The example of the JSON body; nil where there is none.
        let body: [String: Any]?

        var place: String { "\(method) \(path)" }
    }

    /// One parameter of a path, a query or a header.
    struct Parameter {
        let name: String
        let place: String
        let isRequired: Bool
        let schema: [String: Any]
    }

    private let document: [String: Any]

    init() throws {
        document = try #require(try Yams.load(yaml: EmbeddedFiles.openapi) as? [String: Any])
    }

    var tags: [String] { (document["tags"] as? [[String: Any]] ?? []).compactMap { $0["name"] as? String } }

    var servers: [String] { (document["servers"] as? [[String: Any]] ?? []).compactMap { $0["url"] as? String } }

    var operations: [Operation] {
        (document["paths"] as? [String: [String: Any]] ?? [:]).sorted { $0.key < $1.key }.flatMap { path, methods in
            methods.filter { $0.key != "parameters" }.compactMap { method, members -> Operation? in
                guard let members = members as? [String: Any] else { return nil }
                let parameters = [methods, members].flatMap { $0["parameters"] as? [Any] ?? [] }.map(parameter)
                let body = json(members["requestBody"])?["example"] as? [String: Any]
                return Operation(method: method, path: path, members: members, parameters: parameters, body: body)
            }
        }
    }

    private func parameter(_ value: Any) -> Parameter {
        let members = resolved(value)
        return Parameter(
            name: members["name"] as? String ?? "", place: members["in"] as? String ?? "",
            isRequired: members["required"] as? Bool ?? false, schema: resolved(members["schema"]))
    }

    /// The schema of that name.
    func schema(_ name: String) -> [String: Any] { resolved(["$ref": "#/components/schemas/\(name)"]) }

    /// The words that a member of a schema may have.
    func words(_ name: String, _ members: String...) -> Set<String> {
        let schema = members.reduce(schema(name)) { resolved(($0["properties"] as? [String: Any])?[$1]) }
        return Set((schema["enum"] as? [Any] ?? []).compactMap { $0 as? String })
    }

    /// Follows `$ref`, as in `#/components/schemas/Order`.
    func resolved(_ value: Any?) -> [String: Any] {
        let members = value as? [String: Any] ?? [:]
        guard let path = members["$ref"] as? String else { return members }
        let found = path.split(separator: "/").dropFirst().reduce(document as Any?) {
            ($0 as? [String: Any])?[String($1)]
        }
        return resolved(found)
    }

    /// The JSON content of a body or of an answer.
    func json(_ body: Any?) -> [String: Any]? {
        (resolved(body)["content"] as? [String: Any])?["application/json"] as? [String: Any]
    }

    /// What an operation does not say of an answer, as sentences.
    func faults(of answer: TestResponse, to operation: Operation) throws -> [String] {
        let place = "\(operation.place) \(answer.status.code)"
        let responses = operation.members["responses"] as? [String: Any] ?? [:]
        guard let response = responses["\(answer.status.code)"] else { return ["\(place) is not described"] }
        let type = String(answer.headers[.contentType]?.prefix { $0 != ";" } ?? "")
        let content = resolved(response)["content"] as? [String: Any] ?? [:]
        guard let form = content[type] as? [String: Any] else { return ["\(place): \(type) is not described"] }
        guard type.hasSuffix("json") else { return [] }
        let value = try JSONSerialization.jsonObject(with: Data(answer.body.readableBytesView))
        // A problem has members besides those of every problem.
        return faults(of: value, by: form["schema"], at: place, isPart: type == "application/problem+json")
    }

    /// What is wrong with a value by a schema, as sentences; of the keywords, those that the description uses.
    /// A part of `allOf` knows some of the members alone.
    func faults(of value: Any, by schema: Any?, at place: String, isPart: Bool = false) -> [String] {
        let schema = resolved(schema)
        var faults: [String] = []
        if let known = schema["enum"] as? [Any], !known.contains(where: { Self.isEqual($0, value) }) {
            faults.append("\(place): \(value) is none of \(known)")
        }
        if let only = schema["const"], !Self.isEqual(only, value) { faults.append("\(place): \(value) is not \(only)") }
        if let types = schema["type"] as? [String] ?? (schema["type"] as? String).map({ [$0] }),
            !types.contains(where: { Self.isOf($0, value) })
        {
            faults.append("\(place): \(value) is not of \(types)")
        }
        faults += (schema["allOf"] as? [Any] ?? []).flatMap { self.faults(of: value, by: $0, at: place, isPart: true) }
        for choice in ["anyOf", "oneOf"] {
            guard let schemas = schema[choice] as? [Any] else { continue }
            // Beside properties of its own, a choice is about some of them.
            let isPart = schema["properties"] != nil
            if !schemas.contains(where: { self.faults(of: value, by: $0, at: place, isPart: isPart).isEmpty }) {
                faults.append("\(place): \(value) fits no schema of \(choice)")
            }
        }
        if let values = value as? [Any], let items = schema["items"] {
            faults += values.enumerated().flatMap { self.faults(of: $1, by: items, at: "\(place)[\($0)]") }
        }
        if let members = value as? [String: Any] {
            faults += self.faults(of: members, by: schema, at: place, isPart: isPart)
        }
        return faults
    }

    private func faults(
        of members: [String: Any], by schema: [String: Any], at place: String, isPart: Bool
    ) -> [String] {
        let known = properties(of: schema)
        let missing = (schema["required"] as? [String] ?? []).filter { members[$0] == nil }
        let unknown = known.isEmpty || isPart ? [] : members.keys.filter { known[$0] == nil }
        return missing.map { "\(place): \($0) is missing" } + unknown.map { "\(place): \($0) is unknown" }
            + members.flatMap { name, value in
                known[name].map { faults(of: value, by: $0, at: "\(place).\(name)") } ?? []
            }
    }

    /// The properties of a schema, with those of all the schemas of `allOf`.
    private func properties(of schema: [String: Any]) -> [String: Any] {
        let own = schema["properties"] as? [String: Any] ?? [:]
        return (schema["allOf"] as? [Any] ?? []).reduce(own) {
            $0.merging(properties(of: resolved($1))) { own, _ in own }
        }
    }

    private static func isEqual(_ one: Any, _ other: Any) -> Bool {
        one is NSNull ? other is NSNull : "\(one)" == "\(other)" && type(of: one) == type(of: other)
    }

    private static func isOf(_ type: String, _ value: Any) -> Bool {
        switch type {
        case "null": value is NSNull
        case "boolean": value is Bool
        case "integer": value is Int
        case "number": value is Int || value is Double
        case "string": value is String
        case "array": value is [Any]
        default: value is [String: Any]
        }
    }
}
