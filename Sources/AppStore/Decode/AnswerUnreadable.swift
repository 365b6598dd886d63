/// A body that is not a verifyReceipt answer. It says nothing about the receipt: ask again.
package struct AnswerUnreadable: Error, Sendable, Hashable, CustomStringConvertible {
    /// The actual content of the body, as half a sentence: "an empty body".
    package let reason: String

    /// Creates the error for a body that is not an answer, because it is `reason`.
    package init(_ reason: String) {
        self.reason = reason
    }

    /// The error in one sentence for a person.
    package var description: String { "Not an App Store answer: \(reason)." }
}
