import Foundation
import Testing
import Yams

@testable import Server

/// The description of the API as YAML says it.
private struct Description {
    /// One method of one path.
    struct Operation {
        let place: String
        let members: [String: Any]
    }

    private let document: [String: Any]

    init() throws {
        document = try #require(try Yams.load(yaml: EmbeddedFiles.openapi) as? [String: Any])
    }

    var tags: [String] { (document["tags"] as? [[String: Any]] ?? []).compactMap { $0["name"] as? String } }

    var servers: [String] { (document["servers"] as? [[String: Any]] ?? []).compactMap { $0["url"] as? String } }

    var operations: [Operation] {
        (document["paths"] as? [String: [String: Any]] ?? [:]).sorted { $0.key < $1.key }.flatMap { path, methods in
            methods.filter { $0.key != "parameters" }.compactMap { method, members in
                (members as? [String: Any]).map { Operation(place: "\(method) \(path)", members: $0) }
            }
        }
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

@Suite("The description of the API is complete") struct DescriptionTests {
    @Test("Each operation has an id of its own, one known tag, and a summary") func names() throws {
        let description = try Description()
        let operations = description.operations
        let ids = operations.compactMap { $0.members["operationId"] as? String }
        #expect(ids.count == operations.count && Set(ids).count == ids.count && ids.count > 25)
        for id in ids { #expect(id.wholeMatch(of: /[a-z]+([A-Z][a-z]+)+/) != nil, "\(id)") }
        #expect(["createReceipt", "getEntitlements", "listCustomers"].allSatisfy(ids.contains))
        for operation in operations {
            let tags = operation.members["tags"] as? [String] ?? []
            #expect(tags.count == 1 && tags.allSatisfy(description.tags.contains), "\(operation.place)")
            #expect((operation.members["summary"] as? String)?.hasSuffix(".") == true, "\(operation.place)")
        }
        let used = Set(operations.compactMap { ($0.members["tags"] as? [String])?.first })
        #expect(used == Set(description.tags) && !description.servers.isEmpty)
    }

    @Test("Each JSON body and each JSON answer has an example that fits its schema") func examples() throws {
        let description = try Description()
        for operation in description.operations {
            let answers = operation.members["responses"] as? [String: Any] ?? [:]
            let bodies: [(String, Any?)] =
                [("body", operation.members["requestBody"])] + answers.map { ($0.key, $0.value) }
            for (place, body) in bodies {
                guard let json = description.json(body) else { continue }
                let example = try #require(json["example"], "\(operation.place) \(place) has no example")
                let faults = description.faults(of: example, by: json["schema"], at: "\(operation.place) \(place)")
                #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
            }
        }
    }

    @Test("An example that does not fit its schema is found") func wrongExamples() throws {
        let description = try Description()
        let order: [String: Any] = ["$ref": "#/components/schemas/PlacedOrder"]
        #expect(description.faults(of: ["state": "sold"], by: order, at: "order").count == 5)
        #expect(description.faults(of: "x", by: order, at: "order") == ["order: x is not of [\"object\"]"])
    }
}
