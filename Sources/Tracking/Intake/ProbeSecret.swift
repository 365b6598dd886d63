import AppStore
import Foundation
package import Ledger
import Logging
import Subscriptions

/// Apple's verdict on a shared secret.
package enum SecretProbe: Sendable, Hashable {
    /// Apple accepted the secret with this receipt.
    case accepted(ReceiptID)
    /// Apple answered 21004 about this receipt.
    case refused(ReceiptID)
    /// Apple gave no conclusive answer; one sentence.
    case inconclusive(String)
    /// No stored receipt contains a subscription, so there is nothing to ask about.
    case noReceipt
}

extension Tracker {
    /// The most receipts that a secret is tried on until one answer is conclusive.
    static let trialReceiptsMax = 3

    /// Tries a shared secret that is not in use yet on stored receipts. The calls are outside the app's budget: the app
    /// may be paused because of the wrong secret that this one replaces. Settles nothing.
    package func probeSecret(_ secret: String, of app: App) async throws -> SecretProbe {
        var trial = SecretProbe.noReceipt
        for receipt in try await ledger.apps.tellingReceipts(of: app, limit: Self.trialReceiptsMax) {
            let answer = await appStore.verify(
                AppStoreRequest(
                    receipt: Data(receipt.receipt).base64EncodedString(), secret: secret,
                    askFirst: receipt.environment.map(Endpoint.init) ?? .production,
                    sandboxAllowed: app.sandboxAllowed))
            trial = SecretProbe(of: answer, about: receipt.receiptID)
            switch trial {
            case .accepted, .refused: return trial
            case .inconclusive, .noReceipt: continue
            }
        }
        return trial
    }
}

extension Tracker {
    /// Tries the shared secrets that Apple refused, of one app or of all, each at most once a minute in all processes: on
    /// receipts that are known to be of the app. An acceptance in this process since the refused call began needs no call.
    ///
    /// Only this begins and ends the pause of an environment.
    package func trySecrets(of app: App? = nil) async {
        await attempt("try refused secrets") {
            let trials = try await ledger.apps.takeSecretTrials(of: app, every: options.secretTrialSeconds)
            guard !trials.isEmpty else { return }
            let apps = Dictionary(uniqueKeysWithValues: try await ledger.apps.all().map { ($0.id, $0) })
            // An app that Apple is slow about keeps no other one waiting.
            await withTaskGroup(of: Void.self) { group in
                for trial in trials {
                    guard let app = apps[trial.appID] else { continue }
                    group.addTask { await attempt("try a refused secret") { try await run(trial, of: app) } }
                }
            }
            await seeStandings()
        }
    }

    private func run(_ trial: SecretTrial, of app: App) async throws {
        if !trial.isPaused, let refusedAt = trial.refusedAt,
            let acceptedAt = ledger.apps.acceptedSecret(of: app, in: trial.environment), acceptedAt >= refusedAt
        {
            return try await settle(trial, of: app, .accepted, isProof: true)
        }
        var (verdict, isProof) = try await self.verdict(of: app, in: trial.environment)
        if verdict == .untold {
            // The secret is one for both environments. Where the other one accepts it, single receipts were refused. A
            // refusal there pauses nothing here: Apple may need no secret for what was bought here.
            let elsewhere: StoreEnvironment = trial.environment == .production ? .sandbox : .production
            (verdict, isProof) = (try await self.verdict(of: app, in: elsewhere).verdict, false)
            if verdict == .refused { verdict = .untold }
        }
        // A call that a stop ended says nothing.
        guard !Task.isCancelled || verdict != .unanswered else { return }
        try await settle(trial, of: app, verdict, isProof: isProof)
    }

    /// Tries the app's secrets on receipts of an environment; says also whether Apple accepts the present one.
    private func verdict(
        of app: App, in environment: StoreEnvironment
    ) async throws -> (verdict: SecretTrial.Verdict, isProof: Bool) {
        let secrets = try ledger.apps.secrets(of: app)
        var verdict = SecretTrial.Verdict.untold
        for receipt in try await ledger.apps.tellingReceipts(of: app, in: environment, limit: Self.trialReceiptsMax) {
            let answer = await appStore.verify(
                AppStoreRequest(
                    receipt: Data(receipt.receipt).base64EncodedString(), secret: secrets.current,
                    previousSecret: secrets.previous, askFirst: Endpoint(environment),
                    sandboxAllowed: app.sandboxAllowed))
            switch SecretProbe(of: answer, about: receipt.receiptID) {
            case .accepted: return (.accepted, !answer.usedPreviousSecret)
            case .refused: return (.refused, false)
            case .inconclusive, .noReceipt: verdict = .unanswered
            }
        }
        return (verdict, false)
    }

    private func settle(
        _ trial: SecretTrial, of app: App, _ verdict: SecretTrial.Verdict, isProof: Bool
    ) async throws {
        logger.debug("tried a shared secret", metadata: ["app": "\(app.bundleID)", "verdict": "\(verdict)"])
        try await ledger.apps.settle(trial, of: app, verdict, isProof: isProof, every: options.secretTrialSeconds)
    }
}

extension SecretProbe {
    /// Reads the verdict from an answer. Apple looks at the secret after the receipt's form, signature and environment,
    /// so only these answers are conclusive.
    init(of answer: AppStoreAnswer, about receipt: ReceiptID) {
        switch answer.response?.status {
        case 0, 21006: self = .accepted(receipt)
        case 21004: self = .refused(receipt)
        case .some(let status): self = .inconclusive("Apple answered \(status) about receipt \(receipt).")
        case nil: self = .inconclusive(answer.failure ?? "Apple gave no answer about receipt \(receipt).")
        }
    }
}
