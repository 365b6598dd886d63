/// The members of one object of a signed payload, read leniently: a value of another type counts as absent.
struct PayloadFields {
    private let document: JSONDocument
    private let members: [String: Int]

    /// Reads the object that a payload is; nil for anything else.
    init?(_ payload: [UInt8]) {
        guard let document = try? JSONReader.read(payload) else { return nil }
        self.init(document, at: JSONDocument.root)
    }

    private init?(_ document: JSONDocument, at index: Int) {
        guard document.nodes[index].isObject else { return nil }
        self.document = document
        members = document.members(index)
    }

    /// Returns the object in a member; nil if there is none.
    func object(_ name: String) -> PayloadFields? { members[name].flatMap { PayloadFields(document, at: $0) } }

    /// Returns the objects of a list in a member; empty if there is none.
    func objects(_ name: String) -> [PayloadFields] {
        (members[name].map(document.elements) ?? []).compactMap { PayloadFields(document, at: $0) }
    }

    /// Returns a text; nil if absent, null or empty.
    func text(_ name: String) -> String? { members[name].flatMap(document.scalar) }

    /// Returns a whole number; a fraction is rounded, because Xcode writes instants with fractions.
    func integer(_ name: String) -> Int64? { text(name).flatMap(Self.integer(in:)) }

    /// Returns the whole number in a text; nil for anything else.
    static func integer(in text: String) -> Int64? {
        if let exact = LenientNumber.integer(text) { return exact }
        guard let number = Double(text), number.magnitude < 9_007_199_254_740_992 else { return nil }
        return Int64(number.rounded())
    }

    /// Returns an instant in milliseconds since 1970; nil if absent, or if nothing can have happened then.
    func instant(_ name: String) -> Int64? { integer(name).flatMap(LenientInstant.believable) }

    /// Returns a boolean; 0 and 1 count too.
    func flag(_ name: String) -> Bool? {
        switch text(name) {
        case "true", "1": true
        case "false", "0": false
        default: nil
        }
    }
}
