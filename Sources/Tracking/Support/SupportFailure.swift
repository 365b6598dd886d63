import AppStore

/// A support call that Apple did not answer as wished.
package struct SupportFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// Whether Apple refused it; otherwise it is not known whether Apple did it.
    package let isRefusal: Bool
    /// Why, and what to do.
    package let sentence: String

    /// The sentence.
    package var description: String { sentence }
}
