import Hummingbird
import Ledger

/// A body whose fields are all known. An unknown field is refused as a mistake, because its sender would believe that
/// it was read.
protocol KnownFields: Decodable, Sendable {
    associatedtype CodingKeys: CodingKey, CaseIterable
}

/// A body that is decoded only if all its fields are known.
struct OnlyKnownFields<Body: KnownFields>: Decodable, Sendable {
    /// The decoded body.
    let body: Body

    /// Decodes a body. Throws `Problem` for an unknown field.
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
    /// Throws a problem when the query has an unknown name.
    func requireQuery(known: [String]) throws {
        let given = uri.queryParameters.map { String($0.key) }.filter { !$0.isEmpty }
        try Problem.refuseUnknown(given, known: known, as: "query's")
    }
}

extension Problem {
    /// Throws a problem for the first unknown name, in alphabetical order, and suggests the nearest known one.
    fileprivate static func refuseUnknown(_ given: [String], known: [String], as place: String) throws {
        guard let unknown = given.filter({ !known.contains($0) }).min() else { return }
        let hint =
            known.nearest(to: unknown).map { "the nearest name is \($0)." }
            ?? (known.isEmpty ? "there is none to give." : "known are \(known.joined(separator: ", ")).")
        throw Problem(.invalid, "Nothing reads the \(place) \(unknown); \(hint)")
    }
}
