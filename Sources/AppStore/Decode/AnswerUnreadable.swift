/// A body that is no verifyReceipt answer. It says nothing about the receipt: ask again.
public struct AnswerUnreadable: Error, Sendable, Hashable, CustomStringConvertible {
    /// What the body is instead, as half a sentence: "an empty body".
    public let reason: String

    /// A body that is not an answer, because it is `reason`.
    public init(_ reason: String) {
        self.reason = reason
    }

    /// One sentence for a person.
    public var description: String { "Not an App Store answer: \(reason)." }
}
