import AppStore
import Ledger

/// The sum of a process's answers. It changes the shared rate limits when enough answers call for it.
///
/// While Apple answers well, it writes nothing. A receipt that Apple never vouched for may be made by a stranger so that no
/// answer about it comes. So where Apple answered about one that it vouched for before, only those count, unless Apple
/// asks for fewer calls.
actor OutcomeWindows {
    private struct Round {
        var all = OutcomeWindow()
        /// Those about receipts that Apple vouched for before.
        var known = OutcomeWindow()

        /// What the round says about Apple.
        var verdict: OutcomeWindow {
            let asksForLess = all.tooMany > 0 || all.retryAfterSeconds != nil
            return known.failed < known.asked && !asksForLess ? known : all
        }
    }

    private var rounds: [RateLimitOwner: Round] = [:]

    /// Records settled answers; returns the rounds that change a rate limit.
    func record(_ batch: [Checked]) -> [(owner: RateLimitOwner, round: OutcomeWindow)] {
        var complete: [(owner: RateLimitOwner, round: OutcomeWindow)] = []
        for (id, answers) in Dictionary(grouping: batch, by: \.claim.app.id) {
            let isFailing = answers.contains { $0.claim.app.rateLimit.failures > 0 }
            complete += completedRound(.app(id), answers, whileFailing: isFailing)
        }
        // When Apple answers about no app, no single app is the cause. Failures of the sandbox affect no paying
        // customer.
        let calls = batch.filter { $0.answer.calls > 0 && $0.answer.environment == .production }
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
