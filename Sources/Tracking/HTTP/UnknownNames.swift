import Hummingbird
import Ledger

/// A body whose fields are all known: any other one is a mistake of its sender, who would believe that it was read.
protocol KnownFields: Decodable, Sendable {
    associatedtype CodingKeys: CodingKey, CaseIterable
}

/// Reads a body and refuses fields that nothing reads.
struct OnlyKnownFields<Body: KnownFields>: Decodable, Sendable {
    /// What was read.
    let body: Body

    /// Throws `Problem` for an unknown field.
    init(from decoder: any Decoder) throws {
        let given = try decoder.container(keyedBy: AnyName.self).allKeys.map(\.stringValue)
        try Problem.refuseUnknown(given, known: Body.CodingKeys.allCases.map(\.stringValue), as: "body's field")
        body = try Body(from: decoder)
    }

    private struct AnyName: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}

extension Request {
    /// Throws a problem when the query has a name that nothing reads.
    func requireQuery(known: [String]) throws {
        let given = uri.queryParameters.map { String($0.key) }.filter { !$0.isEmpty }
        try Problem.refuseUnknown(given, known: known, as: "query's")
    }
}

extension Problem {
    /// Throws a problem for the first of the given names that nothing reads, with the known one it is nearest to.
    fileprivate static func refuseUnknown(_ given: [String], known: [String], as place: String) throws {
        guard let unknown = given.filter({ !known.contains($0) }).min() else { return }
        let hint =
            known.nearest(to: unknown).map { "the nearest name is \($0)." }
            ?? (known.isEmpty ? "there is none to give." : "known are \(known.joined(separator: ", ")).")
        throw Problem(.invalid, "Nothing reads the \(place) \(unknown); \(hint)")
    }
}
