import AppStore
import Ledger

/// The sum of a process's answers. It changes the shared rate limits when enough answers call for it.
///
/// While Apple answers well, it writes nothing.
actor OutcomeWindows {
    private var rounds: [RateLimitOwner: OutcomeWindow] = [:]

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
        var round = rounds[owner] ?? OutcomeWindow()
        for answer in answers {
            switch owner {
            case .app: round.count(answer)
            case .everyone: round.countCall(answer)
            }
        }
        guard round.hasEnoughSamples(whileFailing: isFailing) else {
            rounds[owner] = round
            return []
        }
        rounds[owner] = nil
        return round.isFailure || isFailing ? [(owner, round)] : []
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
