import AppStore
import Subscriptions

/// The evidence of a number of answers about Apple's health, counted until there is enough to judge by.
struct OutcomeWindow: Sendable, Hashable {
    /// The answers that make a round; fewer while only a few receipts are tried.
    static let answersMin = 20
    static let probeAnswersMin = 3
    /// The calls were too many when at least one answer in this many is HTTP 429; fewer are noise.
    static let tooManyPart = 10

    var asked = 0
    /// Answers that said nothing about a receipt that Apple should know.
    var failed = 0
    /// Answers that show that Apple is overloaded: HTTP 429 and 5xx, status 21005, or none in time.
    var overloaded = 0
    var tooMany = 0
    /// The longest wait that Apple asked for, in seconds.
    var retryAfterSeconds: Double?
    /// The claim time of the newest receipt with a failed or overloaded answer.
    var newestFailureAt: Instant?
    var failure: String?

    var isFailure: Bool { failed > 0 || overloaded > 0 }

    func hasEnoughSamples(whileFailing: Bool) -> Bool {
        retryAfterSeconds != nil || asked >= (whileFailing ? Self.probeAnswersMin : Self.answersMin)
    }

    /// Counts a call about any app: all that matters is whether an answer came.
    mutating func countCall(_ answer: Checked) {
        asked += 1
        guard !answer.repeatsLast, answer.answer.isSilent else { return }
        failed += 1
        newestFailureAt = max(newestFailureAt ?? answer.claim.claimedAt, answer.claim.claimedAt)
        failure = failure ?? answer.answer.failureInFull
    }

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

/// The sum of a process's answers. It changes the shared rate limits when enough answers call for it.
/// A stranger may make a receipt so that no answer about it comes. So where Apple answered about one that it vouched
/// for before, only those count, unless Apple asks for fewer calls.
actor OutcomeWindows {
    private struct Round {
        var all = OutcomeWindow()
        /// Those about receipts that Apple vouched for before.
        var known = OutcomeWindow()

        var verdict: OutcomeWindow {
            let asksForLess = all.tooMany > 0 || all.retryAfterSeconds != nil
            return known.failed < known.asked && !asksForLess ? known : all
        }
    }

    private var rounds: [RateLimitOwner: Round] = [:]

    /// Records settled answers; returns the rounds that change a rate limit. Receipts not asked about do not count.
    func record(_ batch: [Checked]) -> [(owner: RateLimitOwner, round: OutcomeWindow)] {
        var complete: [(owner: RateLimitOwner, round: OutcomeWindow)] = []
        let asked = batch.filter { $0.answer.calls > 0 }
        for (id, answers) in Dictionary(grouping: asked, by: \.claim.app.id) {
            let isFailing = answers.contains { $0.claim.app.rateLimit.failures > 0 }
            complete += completedRound(.app(id), answers, whileFailing: isFailing)
        }
        // When Apple answers about no app, no single app is the cause. The sandbox has no paying customers.
        let calls = asked.filter { $0.answer.environment == .production }
        complete += completedRound(.everyone, calls, whileFailing: calls.contains { $0.claim.app.appleFailures > 0 })
        return complete
    }

    private func completedRound(
        _ owner: RateLimitOwner, _ answers: [Checked], whileFailing isFailing: Bool
    ) -> [(owner: RateLimitOwner, round: OutcomeWindow)] {
        guard !answers.isEmpty else { return [] }
        var round = rounds[owner] ?? Round()
        for answer in answers {
            let isKnown = answer.claim.environment != nil
            switch owner {
            case .app:
                round.all.count(answer)
                if isKnown { round.known.count(answer) }
            case .everyone:
                round.all.countCall(answer)
                if isKnown { round.known.countCall(answer) }
            }
        }
        // A stranger's receipts alone never keep a pause going after three answers.
        let isTest = isFailing && (round.known.asked > 0 || !round.all.isFailure)
        guard round.all.hasEnoughSamples(whileFailing: isTest) else {
            rounds[owner] = round
            return []
        }
        rounds[owner] = nil
        let verdict = round.verdict
        return verdict.isFailure || isFailing ? [(owner, verdict)] : []
    }
}

extension Tracker {
    /// Slows down, stops and resumes the calls according to the answers.
    func adaptRates(to batch: [Checked], _ windows: OutcomeWindows) async {
        let complete = await windows.record(batch)
        for (owner, round) in complete {
            await attempt("keep the rate of calls") {
                try await ledger.apps.changeRateLimit(of: owner) { rateLimit, now in
                    let (next, pause) = rateLimit.after(round, now: now)
                    return RateLimitChange(
                        rateLimit: next, pauseSeconds: pause,
                        reason: round.failure ?? "Apple cannot answer at the moment.")
                }
            }
        }
        if !complete.isEmpty { await seeStandings() }
    }
}
