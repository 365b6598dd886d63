/// An error of the ledger: the reason of a refusal, in one sentence that says what to do.
package struct LedgerError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of a refusal, for callers that map it to an exit status or an HTTP status.
    package enum Kind: Sendable, Hashable {
        /// The named thing does not exist.
        case notFound
        /// The thing exists already, or what exists is in the way.
        case exists
        /// The input is invalid.
        case invalid
        /// The stored history or key does not match this program.
        case mismatch
        /// Another caller is using it at the moment; try again.
        case busy
        /// A limit is exceeded; a retry can succeed after this many seconds.
        case exhausted(retryAfterSeconds: Int)
    }

    /// The kind of refusal.
    package let kind: Kind
    /// One sentence: the problem, its place and the remedy.
    package let message: String

    /// Creates an error with its message.
    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    /// The message.
    package var description: String { message }
}
