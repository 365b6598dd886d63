import AppStore
import Foundation
import Ledger
import Logging
import Subscriptions

extension Tracker {
    /// Asks Apple about one claimed receipt and settles the answer. All other code prepares or repeats this step.
    ///
    /// Uploads, the command line and quarantined receipts take this way. The worker's loop runs the same stages for
    /// many receipts at a time. Throws `busy` when Apple has not answered at `end`; the receipt is then left to the workers.
    func check(_ claim: Claim, until end: ContinuousClock.Instant? = nil) async throws -> CheckedBatch {
        let asked = try await ask(claim, until: end)  // an outage is an answer too
        let checked = Checked(claim, asked)  // interpreted only where it is not the last answer again
        return try await settle([checked])  // locks, reconcile (pure, no clock), one commit
    }

    /// Asks Apple about a claimed receipt. Never throws: an outage is an answer too.
    func ask(_ claim: Claim) async -> AppleAnswer {
        metrics.asks()
        let asked = await answer(about: claim)
        metrics.answered(asked.answer)
        return asked
    }

    /// Settles answers together: their facts, events and schedules change in one commit.
    func settle(_ answers: [Checked]) async throws -> CheckedBatch {
        let begin = ContinuousClock.now
        let chains = try await ledger.chainNumbers(of: answers.reduce(into: []) { $0.formUnion($1.signedHeaders) })
        let settled = try await ledger.settlements.settle(answers.map { $0.pending(chains: chains) })
        if !settled.settled.isEmpty { feedBell.ring() }
        see(answers, unwritten: settled.failures)
        await noteSecrets(answers)
        await noteUnread(in: answers)
        await compareChannels(of: answers)
        let batch = CheckedBatch(settled, of: answers)
        let (counts, elapsed) = (batch.counts(of: answers.count), ContinuousClock.now - begin)
        tally.count(answers)
        counting.add(counts)
        metrics.settled(answers, equal: settled.confirmed, batch, elapsed: elapsed)
        logger.debug(
            "settled", metadata: counts.metadata.merging(["elapsed_ms": "\(Int(elapsed.seconds * 1_000))"]) { $1 })
        return batch
    }

    private func ask(_ claim: Claim, until end: ContinuousClock.Instant?) async throws -> AppleAnswer {
        guard let end else { return await ask(claim) }
        if let asked = await within(end - .now, { await ask(claim) }) { return asked }
        try await ledger.claims.release([claim])
        throw LedgerError(.busy, "Apple has not answered in time; a worker will ask again.")
    }

    /// Asks verifyReceipt or the Server API about a claimed receipt, by the app's verifier and what the device sent.
    private func answer(about claim: Claim) async -> AppleAnswer {
        let question = ServerQuestion(about: claim)
        guard question.vouchesFirst || !question.asksServer else {
            return AppleAnswer(await serverAnswer(about: claim, question))
        }
        let answer = await receiptAnswer(about: claim)
        guard question.asksServer, question.compares || !answer.isVerdict else { return AppleAnswer(answer) }
        let other = await serverAnswer(about: claim, question)
        if other.isHeldBack { return AppleAnswer(answer) }
        // While verifyReceipt cannot answer, the id in the receipt counts as a pointer.
        return answer.isVerdict ? AppleAnswer(answer, compared: other) : AppleAnswer(other)
    }

    private func receiptAnswer(about claim: Claim) async -> AppStoreAnswer {
        let endpoint = claim.environment.map(Endpoint.init) ?? .production
        guard claim.secretPause == nil else {
            return .heldBack(
                from: endpoint,
                because: "Apple refuses the app's shared secret (21004); receipts wait until it accepts it.")
        }
        do {
            let secrets = try ledger.apps.secrets(of: claim.app)
            conditions.clear(.sealedSecret(claim.app.bundleID))
            return await appStore.verify(
                AppStoreRequest(
                    receipt: Data(claim.receipt).base64EncodedString(), secret: secrets.current,
                    previousSecret: secrets.previous, askFirst: endpoint, sandboxAllowed: claim.app.sandboxAllowed))
        } catch {
            conditions.raise(.sealedSecret(claim.app.bundleID), by: "\(error)")
            return AppStoreAnswer(
                environment: endpoint, httpStatus: nil, body: [], response: nil,
                failure: "The app's shared secret cannot be read here; the log says why.", calls: 0,
                usedPreviousSecret: false, elapsedMilliseconds: 0, correlationID: nil)
        }
    }
}

extension Claim {
    /// The pause of the environment in which Apple would be asked about the receipt; nil where it accepts the secret.
    var secretPause: App.Pause? {
        guard !app.secretPauses.isEmpty else { return nil }
        let own = environment ?? LocalReading(of: receipt).receipt?.store.map { StoreEnvironment($0) }
        return app.secretPauses[own ?? .production]
    }
}

extension AppStoreAnswer {
    /// No answer: Apple refuses the app's secret or key, so that it is not asked.
    static func heldBack(from endpoint: Endpoint, because reason: String) -> AppStoreAnswer {
        var answer = AppStoreAnswer(
            environment: endpoint, httpStatus: nil, body: [], response: nil, failure: reason, calls: 0,
            usedPreviousSecret: false, elapsedMilliseconds: 0, correlationID: nil)
        answer.isHeldBack = true
        return answer
    }
}
