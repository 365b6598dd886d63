/// What a person decides by hand: who, and why.
package struct HandDecision: Sendable, Hashable {
    /// The longest name of who decides, in characters.
    package static let actorCharactersMax = 255
    /// The longest reason, in characters.
    package static let reasonCharactersMax = 1000

    /// Who decides.
    package let actor: String
    /// Why, in words for the next person who asks.
    package let reason: String

    /// Throws `invalid` when one of the two is missing, blank, too long or holds NUL.
    package init(by actor: String, because reason: String) throws(LedgerError) {
        try Self.requireWords(actor, "A name of who decides", charactersMax: Self.actorCharactersMax)
        try Self.requireWords(reason, "A reason", charactersMax: Self.reasonCharactersMax)
        self.actor = actor
        self.reason = reason
    }

    private static func requireWords(_ text: String, _ what: String, charactersMax: Int) throws(LedgerError) {
        try require(text, what, charactersMax: charactersMax)
        guard !text.allSatisfy(\.isWhitespace) else { throw LedgerError(.invalid, "\(what) is more than blanks.") }
    }

    /// Throws `invalid` unless the text can be stored.
    static func require(_ text: String, _ what: String, charactersMax: Int) throws(LedgerError) {
        guard !text.unicodeScalars.contains("\0") else { throw LedgerError(.invalid, "\(what) cannot hold a NUL.") }
        let count = text.unicodeScalars.count
        guard (1...charactersMax).contains(count) else {
            throw LedgerError(.invalid, "\(what) has 1 to \(charactersMax) characters; this one has \(count).")
        }
    }
}
