/// Why the ledger refuses, in one sentence that says what to do.
package struct LedgerError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What kind of refusal it is, for callers that map it to an exit status or an HTTP status.
    package enum Kind: Sendable, Hashable {
        /// The named thing does not exist.
        case notFound
        /// The thing exists already.
        case exists
        /// What was given cannot be used.
        case invalid
        /// The stored history or key does not fit this program.
        case mismatch
        /// Another holder has it at the moment; try again.
        case busy
        /// Too much was asked for; in so many seconds there is room again.
        case exhausted(retryAfterSeconds: Int)
    }

    /// The kind of refusal.
    package let kind: Kind
    /// One sentence: what, where, what to do.
    package let message: String

    /// A refusal with its sentence.
    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    /// The sentence.
    package var description: String { message }
}
