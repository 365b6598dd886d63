import Ledger

/// Adds up a process's answers and changes the shared paces when enough of them say so.
///
/// While all is well nothing is written.
actor PaceKeeper {
    private var rounds: [PaceOwner: AnswerRound] = [:]

    /// Takes in settled answers; the rounds that are to be told of.
    func record(_ batch: [Checked]) -> [(owner: PaceOwner, round: AnswerRound)] {
        var told: [(owner: PaceOwner, round: AnswerRound)] = []
        for (id, answers) in Dictionary(grouping: batch, by: \.claim.app.id) {
            let isFailing = answers.contains { $0.claim.app.pace.failures > 0 }
            told += whole(.app(id), answers, whileFailing: isFailing)
        }
        // That Apple does not answer at all is no fault of an app's; what the sandbox does matters to nobody who paid.
        let calls = batch.filter { $0.answer.calls > 0 && $0.answer.environment == .production }
        told += whole(.everyone, calls, whileFailing: calls.contains { $0.claim.app.appleFailures > 0 })
        return told
    }

    private func whole(
        _ owner: PaceOwner, _ answers: [Checked], whileFailing isFailing: Bool
    ) -> [(owner: PaceOwner, round: AnswerRound)] {
        guard !answers.isEmpty else { return [] }
        var round = rounds[owner] ?? AnswerRound()
        for answer in answers {
            switch owner {
            case .app: round.count(answer)
            case .everyone: round.countCall(answer)
            }
        }
        guard round.isWhole(whileFailing: isFailing) else {
            rounds[owner] = round
            return []
        }
        rounds[owner] = nil
        return round.isTroubled || isFailing ? [(owner, round)] : []
    }
}

extension Tracker {
    /// Slows down, stops and starts asking by how the answers went.
    func keepPace(_ batch: [Checked], _ keeper: PaceKeeper) async {
        let told = await keeper.record(batch)
        for (owner, round) in told {
            await attempt("keep the pace of calls") {
                try await ledger.changePace(of: owner) { pace, now in
                    let (next, pause) = pace.after(round, now: now)
                    return PaceChange(
                        pace: next, pauseSeconds: pause, reason: round.trouble ?? "Apple cannot answer at the moment.")
                }
            }
        }
        if !told.isEmpty { await seeStandings() }
    }
}
