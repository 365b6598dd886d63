import AppStore

/// What Apple says about a claimed receipt: the answer that counts, and what the other channel says where both are asked.
struct AppleAnswer: Sendable {
    /// The answer that is settled.
    let answer: AppStoreAnswer
    /// The Server API's answer to compare with; nil where only one channel is asked, or it is the one that counts.
    let compared: AppStoreAnswer?

    init(_ answer: AppStoreAnswer, compared: AppStoreAnswer? = nil) {
        (self.answer, self.compared) = (answer, compared)
    }

    /// Whether Apple said nothing at all.
    var isSilence: Bool { answer.response == nil && answer.server?.contents == nil }
}
