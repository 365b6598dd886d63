import AppStore
import Foundation
import Logging
import Subscriptions

extension Tracker {
    /// Asks Apple about one claimed receipt and settles the answer. All other code prepares or repeats this step; the
    /// worker's loop runs the same stages for many receipts at a time. Throws `busy` when Apple has not answered at
    /// `end`; the receipt is then left to the workers.
    func check(_ claim: Claim, until end: ContinuousClock.Instant? = nil) async throws -> SettledBatch {
        let asked = try await ask(claim, until: end)  // an outage is an answer too
        let checked = Checked(claim, asked)  // interpreted only where it is not the last answer again
        return try await settleAndFollowUp([checked])  // locks, reconcile (pure, no clock), one commit
    }

    /// Asks Apple about a claimed receipt. Never throws: an outage is an answer too.
    func ask(_ claim: Claim) async -> AppStoreAnswer {
        metrics.beginCall()
        let asked = await answer(about: claim)
        metrics.answered(asked)
        return asked
    }

    /// Ends checks: settles their answers together, in one commit of facts, events and schedules, then counts them and does
    /// what follows from them.
    func settleAndFollowUp(_ answers: [Checked]) async throws -> SettledBatch {
        let begin = ContinuousClock.now
        let chains = try await ledger.chainNumbers(of: answers.reduce(into: []) { $0.formUnion($1.signedHeaders) })
        var batch = try await ledger.settlements.settle(answers, chains: chains)
        batch.noteUnasked(of: answers)
        if !batch.settled.isEmpty { feedBell.ring() }
        noteConditions(in: answers, unwritten: batch.failures)
        await noteSecrets(answers)
        await noteUnread(in: answers)
        await compareChannels(of: answers)
        let (counts, elapsed) = (batch.counts(of: answers.count), ContinuousClock.now - begin)
        tally.count(answers)
        counting.add(counts)
        metrics.settled(answers, batch, elapsed: elapsed)
        logger.debug(
            "settled", metadata: counts.metadata.merging(["elapsed_ms": "\(Int(elapsed.seconds * 1_000))"]) { $1 })
        return batch
    }

    private func ask(_ claim: Claim, until end: ContinuousClock.Instant?) async throws -> AppStoreAnswer {
        guard let end else { return await ask(claim) }
        if let asked = await within(end - .now, { await ask(claim) }) { return asked }
        try await ledger.claims.release([claim])
        throw LedgerError(.busy, "Apple has not answered in time; a worker will ask again.")
    }

    /// Asks verifyReceipt or the Server API about a claimed receipt, by the app's verifier and what the device sent.
    /// Where both are asked, the answer that counts has what the other one adds.
    private func answer(about claim: Claim) async -> AppStoreAnswer {
        let question = ServerQuestion(about: claim)
        guard question.vouchesFirst || !question.asksServer else { return await serverAnswer(about: claim, question) }
        var answer = await receiptAnswer(about: claim)
        guard question.asksServer, question.compares || !answer.isVerdict else { return answer }
        var other = await serverAnswer(about: claim, question)
        if other.isHeldBack { return answer }
        guard answer.isVerdict else {
            // While verifyReceipt cannot answer, the id in the receipt counts as a pointer.
            if answer.refusesSecret { other.secretRefusedIn = answer.environment }
            return other
        }
        answer.compared = other.server
        return answer
    }

    private func receiptAnswer(about claim: Claim) async -> AppStoreAnswer {
        let environment = claim.environment ?? .production
        guard claim.secretPause == nil else {
            return .heldBack(
                from: environment,
                because: "Apple refuses the app's shared secret (21004); receipts wait until it accepts it.")
        }
        do {
            let secrets = try ledger.apps.secrets(of: claim.app)
            conditions.clear(.sealedSecret(claim.app.bundleID))
            return await appStore.verify(
                AppStoreRequest(
                    receipt: Data(claim.receipt).base64EncodedString(), secret: secrets.current,
                    previousSecret: secrets.previous, askFirst: environment, sandboxAllowed: claim.app.sandboxAllowed))
        } catch {
            conditions.raise(.sealedSecret(claim.app.bundleID), by: "\(error)")
            return .notAsked(in: environment, because: "The app's shared secret cannot be read here; the log says why.")
        }
    }
}

extension Claim {
    /// The pause of the environment in which Apple would be asked about the receipt; nil where it accepts the secret.
    var secretPause: App.Pause? {
        guard !app.secretPauses.isEmpty else { return nil }
        let own = environment ?? LocalReading(of: receipt).receipt?.store
        return app.secretPauses[own ?? .production]
    }
}

extension AppStoreAnswer {
    /// No answer: Apple refuses the app's secret or key, so that it is not asked.
    static func heldBack(from environment: StoreEnvironment, because reason: String) -> AppStoreAnswer {
        var answer = AppStoreAnswer.notAsked(in: environment, because: reason)
        answer.isHeldBack = true
        return answer
    }

    /// No answer, because Apple was not asked.
    fileprivate static func notAsked(in environment: StoreEnvironment, because reason: String) -> AppStoreAnswer {
        AppStoreAnswer(
            environment: environment, httpStatus: nil, body: [], failure: reason, calls: 0, usedPreviousSecret: false,
            elapsedMilliseconds: 0)
    }

    /// Whether verifyReceipt refuses the app's secret, or the receipt is another app's.
    var refusesSecret: Bool { response?.status == 21004 }

    /// Whether Apple said nothing that can be read.
    var saysNothing: Bool { response == nil && server?.contents == nil }
}

extension SettledBatch {
    /// The changes. Receipts with the same subscription report the same change, which counts once.
    var events: [Event] {
        struct Reported: Hashable {
            let subscription: OriginalTransactionID?
            let environment: StoreEnvironment?
            let event: Event
        }
        let reported = settled.flatMap { receipt in
            receipt.subscriptions.flatMap { subscription in
                subscription.events.map {
                    Reported(subscription: subscription.id, environment: subscription.environment, event: $0)
                }
            } + receipt.purchaseEvents.map { Reported(subscription: nil, environment: nil, event: $0) }
        }
        return Set(reported).map(\.event)
    }

    fileprivate mutating func noteUnasked(of answers: [Checked]) {
        let failed = Set(failures.map(\.receiptID))
        for answer in answers where answer.answer.calls == 0 && !failed.contains(answer.claim.receiptID) {
            unasked[answer.claim.receiptID] = answer.answer.failure ?? "Apple was not asked."
        }
    }

    /// Receipts that Apple was asked about but gave no usable answer for, with the reason.
    var unanswered: [(receipt: ReceiptID, reason: String)] {
        settled.filter { $0.outcome == .indeterminate && unasked[$0.receiptID] == nil }
            .map { ($0.receiptID, $0.reason ?? "no answer") }
    }
}
