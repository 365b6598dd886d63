import AppStore
import Ledger
import Subscriptions

/// The evidence of a number of answers about Apple's health, counted until there is enough to judge by.
struct OutcomeWindow: Sendable, Hashable {
    /// The answers that make a round; fewer while only a few receipts are tried.
    static let answersMin = 20
    static let probeAnswersMin = 3
    /// The calls were too many when at least one answer in this many is HTTP 429; fewer are noise.
    static let tooManyPart = 10

    /// All answers.
    var asked = 0
    /// Answers that said nothing about a receipt that Apple should know.
    var failed = 0
    /// Answers that show that Apple is overloaded: HTTP 429 and 5xx, status 21005, or none in time.
    var overloaded = 0
    /// Overloaded answers with HTTP 429.
    var tooMany = 0
    /// The longest wait that Apple asked for, in seconds.
    var retryAfterSeconds: Double?
    /// The claim time of the newest receipt with a failed or overloaded answer.
    var newestFailureAt: Instant?
    /// The problem, in a sentence.
    var failure: String?

    /// Whether anything failed.
    var isFailure: Bool { failed > 0 || overloaded > 0 }

    /// Returns whether there are enough answers to judge by.
    func hasEnoughSamples(whileFailing: Bool) -> Bool {
        retryAfterSeconds != nil || asked >= (whileFailing ? Self.probeAnswersMin : Self.answersMin)
    }

    /// Counts a call about any app: all that matters is whether an answer came.
    mutating func countCall(_ answer: Checked) {
        asked += 1
        guard !answer.isRepeated, answer.answer.isSilent else { return }
        failed += 1
        newestFailureAt = max(newestFailureAt ?? answer.claim.claimedAt, answer.claim.claimedAt)
        failure = failure ?? answer.answer.failureInFull
    }

    /// Counts an answer.
    mutating func count(_ answer: Checked) {
        asked += 1
        if answer.isFailure { failed += 1 }
        if answer.isOverloaded { overloaded += 1 }
        if answer.answer.httpStatus == 429 { tooMany += 1 }
        retryAfterSeconds = [retryAfterSeconds, answer.answer.retryAfterSeconds].compactMap(\.self).max()
        guard answer.isFailure || answer.isOverloaded else { return }
        newestFailureAt = max(newestFailureAt ?? answer.claim.claimedAt, answer.claim.claimedAt)
        failure = failure ?? answer.answer.failureInFull
    }
}

extension AppStoreAnswer {
    /// Whether Apple does not answer, whatever is asked.
    fileprivate var isSilent: Bool {
        if server != nil { return httpStatus.map { $0 >= 500 } ?? true }
        return response.map { $0.status == 21005 } ?? (httpStatus != 429)
    }
}
