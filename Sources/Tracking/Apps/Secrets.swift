import AppStore
import Crypto
import Foundation
import Logging
import Postgres
import SQL
package import Subscriptions
import Synchronization

/// A seal for secrets at rest: the operator's master key (ChaCha20-Poly1305). Each secret is bound to its owner.
package struct SecretSeal: Sendable {
    private let key: SymmetricKey

    /// Creates a seal from a master key of exactly 32 bytes; throws `invalid` for any other length.
    package init(masterKey: [UInt8]) throws(LedgerError) {
        guard masterKey.count == 32 else {
            throw LedgerError(.invalid, "The master key has \(masterKey.count) bytes; give 32 bytes in base64.")
        }
        key = SymmetricKey(data: masterKey)
    }

    /// Returns the sealed form of `secret`, which opens only for the same `owner`.
    package func seal(_ secret: String, for owner: String) throws -> [UInt8] {
        let box = try ChaChaPoly.seal(Data(secret.utf8), using: key, authenticating: Data(owner.utf8))
        return [UInt8](box.combined)
    }

    /// Returns a keyed hash of a text, the same for the same `owner`. Without the master key it says nothing about the
    /// text.
    func hash(_ text: String, of owner: String) throws -> [UInt8] {
        let code = HMAC<SHA256>.authenticationCode(for: Data("\(owner): \(text)".utf8), using: key)
        return Array(code)
    }

    /// Returns the secret that was sealed for `owner`.
    ///
    /// Throws `mismatch` when the master key is a different one or the sealed bytes were changed.
    package func open(_ sealed: [UInt8], for owner: String) throws(LedgerError) -> String {
        do {
            let box = try ChaChaPoly.SealedBox(combined: sealed)
            let secret = try ChaChaPoly.open(box, using: key, authenticating: Data(owner.utf8))
            return String(decoding: secret, as: UTF8.self)
        } catch {
            throw LedgerError(
                .mismatch,
                "The stored secret of \(owner) does not open with this master key; "
                    + "set the PERENNIAL_MASTER_KEY it was sealed with, or rotate the secret.")
        }
    }
}

/// A cache of the apps' opened secrets, which every call to Apple needs. An entry is valid until the sealed secrets
/// change.
final class OpenedSecrets: Sendable {
    private struct Opened {
        let sealed: [[UInt8]?]
        let secrets: AppSecrets
    }

    private let byApp = Mutex<[BundleID: Opened]>([:])

    /// Returns the secrets of an app; opens them only if they are not cached.
    ///
    /// A previous secret that does not open is none: after the loss of a master key and a rotation it is sealed with the
    /// lost key.
    func secrets(of app: App, open: ([UInt8]?) throws -> String?) throws -> AppSecrets {
        let sealed = [app.sealedSecret, app.sealedPreviousSecret]
        if let known = byApp.withLock({ $0[app.bundleID] }), known.sealed == sealed { return known.secrets }
        let current = try open(app.sealedSecret)
        let previous: String?
        do {
            previous = try open(app.sealedPreviousSecret)
        } catch let error as LedgerError where error.kind == .mismatch {
            previous = nil
        }
        let secrets = AppSecrets(current: current, previous: previous)
        byApp.withLock { $0[app.bundleID] = Opened(sealed: sealed, secrets: secrets) }
        return secrets
    }
}

/// A receipt that reveals, by Apple's answer, whether an app's shared secret is right.
package struct ProbeReceipt: Sendable {
    package let receiptID: ReceiptID
    /// The environment in which Apple verified it.
    package let environment: StoreEnvironment?
    /// The bytes to send to Apple.
    package let receipt: [UInt8]
}

extension LedgerApps {
    /// Returns receipts to test an app's shared secret with, at most `limit`: verified receipts that contain
    /// subscriptions, since Apple checks the secret only for those; of one environment where one is given.
    package func tellingReceipts(
        of app: App, in environment: StoreEnvironment? = nil, limit: Int
    ) async throws -> [ProbeReceipt] {
        let rows = try await query(
            Queries.findProbeReceipts,
            [.int4(app.id), .int4(Int32(clamping: limit)), .text(environment?.rawValue)])
        return try rows.map { row in
            ProbeReceipt(
                receiptID: ReceiptID(try row.int8("receipt_id")), environment: try row.wordIfPresent("environment"),
                receipt: try row.bytea("data"))
        }
    }
}

/// A shared secret that is to be tried now, on a receipt that is known to be of the app.
///
/// Apple also answers 21004 about a receipt of another app, which any device can send. So one 21004 pauses nothing: this
/// trial decides.
package struct SecretTrial: Sendable {
    package let appID: Int32
    /// Where Apple refused the secret.
    package let environment: StoreEnvironment
    /// When the first call began that Apple refused since the last trial; nil where there is only a pause.
    package let refusedAt: Instant?
    /// Whether the environment is paused. Then only Apple's answer to a trial counts.
    package let isPaused: Bool
    /// When the trial began, by the database's clock.
    package let beganAt: Instant

    /// What a trial showed.
    package enum Verdict: String, Sendable {
        /// Apple accepts the secret: what it refused were single receipts. A pause ends.
        case accepted
        /// Apple refuses the secret: the environment pauses.
        case refused
        /// Apple gave no answer that tells: nothing changes, and the next trial waits longer.
        case unanswered
        /// No receipt can tell: a pause ends, each refused receipt waits on its own, and the status says so.
        case untold
    }
}

extension LedgerApps {
    /// Records that Apple refused an app's secret about receipts; the first of these calls began at `instant`.
    package func noteRefusedSecret(
        of app: App, in environment: StoreEnvironment, about receipts: Set<ReceiptID>, at instant: Instant
    ) async throws {
        _ = try await write(
            Queries.noteRefusedSecret,
            [
                .int4(app.id), .text(environment.rawValue), .instant(instant), .int8s(receipts.sorted().map(\.number)),
                .int4(App.SecretDoubt.receiptsMax),
            ])
    }

    /// Records that Apple accepted an app's present secret in a call that began at `instant`. Writes only the first time.
    package func noteAcceptedSecret(
        of app: App, in environment: StoreEnvironment, at instant: Instant
    ) async throws {
        guard ledger.acceptedSecrets.note(app, environment, at: instant), app.secretPauses[environment] == nil else {
            return
        }
        _ = try await write(
            Queries.proveSecret, [.int4(app.id), .text(environment.rawValue), .bytea(app.sealedSecret)])
        ledger.acceptedSecrets.proved(app, environment)
    }

    /// Returns when the last call began in which Apple accepted the app's present secret for this process; nil for none.
    package func acceptedSecret(of app: App, in environment: StoreEnvironment) -> Instant? {
        ledger.acceptedSecrets.lastAccepted(app, environment)
    }

    /// Takes the trials that are due, of one app or of all. No process takes the same one again within `seconds`.
    package func takeSecretTrials(of app: App? = nil, every seconds: Double) async throws -> [SecretTrial] {
        try await write(Queries.takeSecretTrials, [.float8(seconds), .int4(app?.id)]).map { row in
            SecretTrial(
                appID: try row.int4("app_id"), environment: try row.word("environment"),
                refusedAt: try row.instantIfPresent("refused_at"), isPaused: try row.bool("paused"),
                beganAt: try row.instant("began_at"))
        }
    }

    /// Records what a trial of `app`'s secrets showed. `isProof` says that Apple accepted the present one. The verdict on a
    /// secret that was replaced meanwhile changes nothing.
    package func settle(
        _ trial: SecretTrial, of app: App, _ verdict: SecretTrial.Verdict, isProof: Bool, every seconds: Double
    ) async throws {
        _ = try await write(
            Queries.settleSecretTrial,
            [
                .int4(app.id), .text(trial.environment.rawValue), .bytea(app.sealedSecret), .instant(trial.beganAt),
                .text(verdict.rawValue), .bool(isProof), .float8(seconds),
            ])
    }
}

/// When Apple last accepted the apps' secrets in calls of this process.
final class AcceptedSecrets: Sendable {
    private struct Place: Hashable {
        let app: Int32
        let environment: StoreEnvironment
    }

    private struct Acceptance {
        let sealed: [UInt8]?
        var at: Instant
        var isProved = false
    }

    private let last = Mutex<[Place: Acceptance]>([:])

    /// Records an acceptance. Returns whether the ledger does not know yet that the secret is accepted.
    func note(_ app: App, _ environment: StoreEnvironment, at instant: Instant) -> Bool {
        let place = Place(app: app.id, environment: environment)
        return last.withLock { last -> Bool in
            if let known = last[place], known.sealed == app.sealedSecret {
                last[place]?.at = max(known.at, instant)
                return !known.isProved
            }
            last[place] = Acceptance(sealed: app.sealedSecret, at: instant)
            return true
        }
    }

    /// Records that the ledger knows of an acceptance.
    func proved(_ app: App, _ environment: StoreEnvironment) {
        let place = Place(app: app.id, environment: environment)
        last.withLock { last in
            if last[place]?.sealed == app.sealedSecret { last[place]?.isProved = true }
        }
    }

    /// Returns when the last accepted call about the app's present secret began.
    func lastAccepted(_ app: App, _ environment: StoreEnvironment) -> Instant? {
        last.withLock { last in
            last[Place(app: app.id, environment: environment)].flatMap { $0.sealed == app.sealedSecret ? $0.at : nil }
        }
    }
}

extension App.Pause {
    /// The pause of an environment in which Apple refuses the shared secret, until the next trial is accepted.
    init(forSecretIn environment: StoreEnvironment, triedAt: Instant) {
        self.init(
            until: triedAt,
            reason: "Apple refuses the shared secret (21004) in \(environment.rawValue); run "
                + "`perennial app rotate-secret`. One receipt is tried every minute until Apple accepts it",
            environment: environment)
    }
}

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
                    askFirst: receipt.environment ?? .production,
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
                    previousSecret: secrets.previous, askFirst: environment,
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
