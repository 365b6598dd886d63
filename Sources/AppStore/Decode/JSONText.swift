/// A JSON text read once: a flat list of nodes over its bytes. Strings and numbers stay where they stand until asked for, so
/// ids keep all their digits and an answer of a thousand rows costs one pass.
struct JSONText: Sendable {
    let bytes: [UInt8]
    let nodes: [JSONNode]

    /// The outermost value.
    var root: JSONValue { JSONValue(text: self, index: 0) }
}

/// One value, or one key, in a `JSONText`.
struct JSONNode: Sendable {
    enum Kind: UInt8, Sendable {
        case null, boolean, number, string, escapedString, array, object
    }

    let kind: Kind
    /// The first byte of the content; for a string, after its quote.
    let start: Int32
    /// The byte after the content.
    var end: Int32
    /// The node after this value and everything in it.
    var next: Int32
}
