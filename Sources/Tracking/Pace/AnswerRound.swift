import Ledger
import Subscriptions

/// What some answers together say of how Apple is: counted until there are enough to judge by.
struct AnswerRound: Sendable, Hashable {
    /// Answers that make a round, and fewer while only a few receipts are tried.
    static let answersMin = 20
    static let probeAnswersMin = 3
    /// Which part of a round's answers must be HTTP 429 for its calls to have been too many; fewer are noise.
    static let tooManyPart = 10

    /// Answers.
    var asked = 0
    /// Answers that said nothing about a receipt of which Apple could say something.
    var troubled = 0
    /// Answers by which Apple shows that it has too much to do: HTTP 429 and 5xx, status 21005, or none in time.
    var overloaded = 0
    /// HTTP 429 among them.
    var tooMany = 0
    /// How long Apple asked us to wait, in seconds; the longest.
    var retryAfterSeconds: Double?
    /// When the newest receipt with a troubled or overloaded answer was claimed.
    var newestTroubleAt: Instant?
    /// What was the matter, in a sentence.
    var trouble: String?

    /// Whether anything went wrong.
    var isTroubled: Bool { troubled > 0 || overloaded > 0 }

    /// Whether there are enough answers to judge by.
    func isWhole(whileFailing: Bool) -> Bool {
        retryAfterSeconds != nil || asked >= (whileFailing ? Self.probeAnswersMin : Self.answersMin)
    }

    /// Counts a call of whichever app: all that matters is whether an answer came.
    mutating func countCall(_ answer: Checked) {
        asked += 1
        let isSilent = answer.answer.response.map { $0.status == 21005 } ?? (answer.answer.httpStatus != 429)
        guard isSilent else { return }
        troubled += 1
        newestTroubleAt = max(newestTroubleAt ?? answer.claim.claimedAt, answer.claim.claimedAt)
        trouble = trouble ?? answer.answer.troubleInFull
    }

    /// Counts an answer.
    mutating func count(_ answer: Checked) {
        asked += 1
        if answer.isTroubled { troubled += 1 }
        if answer.isOverloaded { overloaded += 1 }
        if answer.answer.httpStatus == 429 { tooMany += 1 }
        retryAfterSeconds = [retryAfterSeconds, answer.answer.retryAfterSeconds].compactMap(\.self).max()
        guard answer.isTroubled || answer.isOverloaded else { return }
        newestTroubleAt = max(newestTroubleAt ?? answer.claim.claimedAt, answer.claim.claimedAt)
        trouble = trouble ?? answer.answer.troubleInFull
    }
}
