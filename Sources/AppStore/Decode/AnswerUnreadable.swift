/// A body that is no verifyReceipt answer. It says nothing about the receipt: ask again.
package struct AnswerUnreadable: Error, Sendable, Hashable, CustomStringConvertible {
    /// What the body is instead, as half a sentence: "an empty body".
    package let reason: String

    /// A body that is not an answer, because it is `reason`.
    package init(_ reason: String) {
        self.reason = reason
    }

    /// One sentence for a person.
    package var description: String { "Not an App Store answer: \(reason)." }
}
