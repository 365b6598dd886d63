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
        Array(try ChaChaPoly.seal(Data(secret.utf8), using: key, authenticating: Data(owner.utf8)).combined)
    }

    /// Returns a keyed hash of a text, the same for the same `owner`; without the master key it says nothing.
    func hash(_ text: String, of owner: String) throws -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: Data("\(owner): \(text)".utf8), using: key))
    }

    /// Returns the secret that was sealed for `owner`; throws `mismatch` for another master key, and for changed bytes.
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

/// A cache of the apps' opened secrets, which every call to Apple needs, until the sealed ones change.
final class OpenedSecrets: Sendable {
    private let byApp = Mutex<[BundleID: (sealed: [[UInt8]?], secrets: AppSecrets)]>([:])

    /// Returns the secrets of an app; opens them only if they are not cached. A previous secret that does not open is
    /// none: after the loss of a master key and a rotation it is sealed with the lost key.
    func secrets(of app: App, open: ([UInt8]?) throws -> String?) throws -> AppSecrets {
        let sealed = [app.sealedSecret, app.sealedPreviousSecret]
        if let known = byApp.withLock({ $0[app.bundleID] }), known.sealed == sealed { return known.secrets }
        let current = try open(app.sealedSecret)
        let previous: String?
        do {
            previous = try open(app.sealedPreviousSecret)
        } catch let error as LedgerError where error.kind == .mismatch { previous = nil }
        let secrets = AppSecrets(current: current, previous: previous)
        byApp.withLock { $0[app.bundleID] = (sealed, secrets) }
        return secrets
    }
}

/// A shared secret that is to be tried now, on a receipt that is known to be of the app. Apple also answers 21004 about
/// a receipt of another app, which any device can send. So one 21004 pauses nothing: this trial decides.
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
    /// Returns receipts to test an app's shared secret with, at most `limit`, of one environment where one is given.
    /// verifyReceipt vouched for them, so that it can read them. They contain subscriptions, because Apple checks the
    /// secret only for those.
    package func tellingReceipts(
        of app: App, in environment: StoreEnvironment? = nil, limit: Int
    ) async throws -> [(receiptID: ReceiptID, environment: StoreEnvironment?, bytes: [UInt8])] {
        try await query(
            Queries.findProbeReceipts,
            .int4(app.id), .int4(Int32(clamping: limit)), .text(environment?.rawValue)
        ).map { row in
            (ReceiptID(try row.int8("receipt_id")), try row.wordIfPresent("environment"), try row.bytea("data"))
        }
    }

    /// Records that Apple refused an app's secret about receipts; the first of these calls began at `instant`.
    package func noteRefusedSecret(
        of app: App, in environment: StoreEnvironment, about receipts: Set<ReceiptID>, at instant: Instant
    ) async throws {
        _ = try await write(
            Queries.noteRefusedSecret,
            .int4(app.id), .text(environment.rawValue), .instant(instant), .int8s(receipts.sorted().map(\.number)),
            .int4(App.SecretDoubt.receiptsMax), .bytea(app.sealedSecret))
    }

    /// Records that Apple accepted an app's present secret in a call that began at `instant`; writes it only once.
    package func noteAcceptedSecret(of app: App, in environment: StoreEnvironment, at instant: Instant) async throws {
        let isNews = ledger.acceptedSecrets.note(app, environment, at: instant)
        guard isNews || app.previousSecrets[environment] != nil, app.secretPauses[environment] == nil else { return }
        _ = try await write(Queries.proveSecret, .int4(app.id), .text(environment.rawValue), .bytea(app.sealedSecret))
        ledger.acceptedSecrets.proved(app, environment)
    }

    /// Records that Apple refused an app's present secret and accepted the previous one; writes it only once.
    package func notePreviousSecret(of app: App, in environment: StoreEnvironment) async throws {
        guard app.previousSecrets[environment] == nil, app.secretPauses[environment] == nil else { return }
        _ = try await write(
            Queries.notePreviousSecret, .int4(app.id), .text(environment.rawValue), .bytea(app.sealedSecret))
    }

    /// Takes the trials that are due, of one app or of all. No process takes the same one again within `seconds`.
    package func takeSecretTrials(of app: App? = nil, every seconds: Double) async throws -> [SecretTrial] {
        try await write(Queries.takeSecretTrials, .float8(seconds), .int4(app?.id)).map { row in
            SecretTrial(
                appID: try row.int4("app_id"), environment: try row.word("environment"),
                refusedAt: try row.instantIfPresent("refused_at"), isPaused: try row.bool("paused"),
                beganAt: try row.instant("began_at"))
        }
    }

    /// Records what a trial showed, unless the secret was replaced since. `isProof`: Apple accepted the present one.
    package func settle(
        _ trial: SecretTrial, of app: App, _ verdict: SecretTrial.Verdict, isProof: Bool, every seconds: Double
    ) async throws {
        _ = try await write(
            Queries.settleSecretTrial,
            .int4(app.id), .text(trial.environment.rawValue), .bytea(app.sealedSecret), .instant(trial.beganAt),
            .text(verdict.rawValue), .bool(isProof), .float8(seconds))
    }
}

/// When Apple last accepted the apps' secrets in calls of this process.
final class AcceptedSecrets: Sendable {
    private struct Acceptance {
        let sealed: [UInt8]?
        var at: Instant
        var isProved = false
    }

    private let last = Mutex<[Int32: [StoreEnvironment: Acceptance]]>([:])

    /// Records an acceptance. Returns whether the ledger does not know yet that the secret is accepted.
    func note(_ app: App, _ environment: StoreEnvironment, at instant: Instant) -> Bool {
        last.withLock { last -> Bool in
            if let known = last[app.id]?[environment], known.sealed == app.sealedSecret {
                last[app.id]?[environment]?.at = max(known.at, instant)
                return !known.isProved
            }
            last[app.id, default: [:]][environment] = Acceptance(sealed: app.sealedSecret, at: instant)
            return true
        }
    }

    /// Records that the ledger knows of an acceptance.
    func proved(_ app: App, _ environment: StoreEnvironment) {
        last.withLock { last in
            if last[app.id]?[environment]?.sealed == app.sealedSecret { last[app.id]?[environment]?.isProved = true }
        }
    }

    /// Returns when the last accepted call about the app's present secret began.
    func lastAccepted(_ app: App, _ environment: StoreEnvironment) -> Instant? {
        guard let known = last.withLock({ $0[app.id]?[environment] }) else { return nil }
        return known.sealed == app.sealedSecret ? known.at : nil
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
    /// No stored receipt that verifyReceipt vouched for contains a subscription, so there is nothing to ask about.
    case noReceipt

    /// Reads the verdict. Apple looks at the secret after form, signature and environment: only these answers tell.
    init(of answer: AppStoreAnswer, about receipt: ReceiptID) {
        switch answer.response?.status {
        case 0, 21006: self = .accepted(receipt)
        case 21004: self = .refused(receipt)
        case .some(let status): self = .inconclusive("Apple answered \(status) about receipt \(receipt).")
        case nil: self = .inconclusive(answer.failure ?? "Apple gave no answer about receipt \(receipt).")
        }
    }
}

extension Tracker {
    /// The most receipts that a secret is tried on until one answer is conclusive.
    static let trialReceiptsMax = 3

    /// Tries a shared secret that is not in use yet on stored receipts, and settles nothing. The calls are outside the
    /// app's budget: the app may be paused because of the wrong secret that this one replaces.
    package func probeSecret(_ secret: String, of app: App) async throws -> SecretProbe {
        try await probe(AppSecrets(current: secret, previous: nil), of: app).probe
    }

    /// Tries secrets on stored receipts until one answer is conclusive; says also whether Apple accepts the current.
    private func probe(
        _ secrets: AppSecrets, of app: App, in environment: StoreEnvironment? = nil
    ) async throws -> (probe: SecretProbe, isProof: Bool) {
        var probe = SecretProbe.noReceipt
        for receipt in try await ledger.apps.tellingReceipts(of: app, in: environment, limit: Self.trialReceiptsMax) {
            let answer = await appStore.verify(
                AppStoreRequest(
                    receipt: Data(receipt.bytes).base64EncodedString(), secret: secrets.current,
                    previousSecret: secrets.previous, askFirst: environment ?? receipt.environment ?? .production,
                    sandboxAllowed: app.sandboxAllowed))
            probe = SecretProbe(of: answer, about: receipt.receiptID)
            switch probe {
            case .accepted: return (probe, !answer.usedPreviousSecret)
            case .refused: return (probe, false)
            case .inconclusive, .noReceipt: continue
            }
        }
        return (probe, false)
    }

    /// Tries the shared secrets that Apple refused, of one app or of all, each at most once a minute in all processes: on
    /// receipts that are known to be of the app. An acceptance in this process since the refused call began needs no call.
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
            let acceptedAt = ledger.acceptedSecrets.lastAccepted(app, trial.environment), acceptedAt >= refusedAt
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
        let (probe, isProof) = try await self.probe(try ledger.apps.secrets(of: app), of: app, in: environment)
        switch probe {
        case .accepted: return (.accepted, isProof)
        case .refused: return (.refused, false)
        case .inconclusive: return (.unanswered, false)
        case .noReceipt: return (.untold, false)
        }
    }

    private func settle(_ trial: SecretTrial, of app: App, _ verdict: SecretTrial.Verdict, isProof: Bool) async throws {
        logger.debug("tried a shared secret", metadata: ["app": "\(app.bundleID)", "verdict": "\(verdict)"])
        try await ledger.apps.settle(trial, of: app, verdict, isProof: isProof, every: options.secretTrialSeconds)
    }
}

extension Tracker {
    /// Records in the ledger the first refused and the last accepted call of each app and environment, and whether only the
    /// previous secret was accepted.
    func noteSecrets(_ answers: [Checked]) async {
        var seen: [SecretPlace: SecretNotes] = [:]
        for answer in answers {
            guard let evidence = answer.secretEvidence else { continue }
            let place = SecretPlace(
                appID: answer.claim.app.id, environment: answer.answer.secretRefusedIn ?? answer.answer.environment)
            let claimedAt = answer.claim.claimedAt
            var notes = seen[place] ?? SecretNotes(app: answer.claim.app)
            switch evidence {
            case .refused(let receipt):
                notes.refusedAt = min(notes.refusedAt ?? claimedAt, claimedAt)
                notes.refused.insert(receipt)
            case .current: notes.acceptedAt = max(notes.acceptedAt ?? claimedAt, claimedAt)
            case .previous: notes.usedPrevious = true
            }
            seen[place] = notes
        }
        guard !seen.isEmpty else { return }
        await attempt("note what Apple says of shared secrets") {
            for (place, notes) in seen {
                if let instant = notes.acceptedAt {
                    try await ledger.apps.noteAcceptedSecret(of: notes.app, in: place.environment, at: instant)
                } else if notes.usedPrevious {
                    try await ledger.apps.notePreviousSecret(of: notes.app, in: place.environment)
                }
                if let instant = notes.refusedAt {
                    try await ledger.apps.noteRefusedSecret(
                        of: notes.app, in: place.environment, about: notes.refused, at: instant)
                }
            }
        }
    }
}

/// One app's secret in one environment.
private struct SecretPlace: Hashable {
    let appID: Int32
    let environment: StoreEnvironment
}

/// What answers show about the secret of one app in one environment.
private struct SecretNotes {
    let app: App
    var refusedAt: Instant?
    var refused: Set<ReceiptID> = []
    var acceptedAt: Instant?
    var usedPrevious = false
}

/// The information in an answer about an app's shared secret.
private enum SecretEvidence {
    /// Apple refuses every stored secret.
    case refused(ReceiptID)
    /// Apple accepts the present secret.
    case current
    /// Apple refuses the present secret and accepts the previous one.
    case previous
}

extension Checked {
    /// What the answer shows about the secret; nil for nothing. Apple looks at the secret late, and only where there
    /// are subscriptions; only for those it sends a `latest_receipt`.
    fileprivate var secretEvidence: SecretEvidence? {
        if answer.secretRefusedIn != nil { return .refused(claim.receiptID) }
        if repeatsLast, let outline = answer.outline {
            if answer.usedPreviousSecret { return .previous }
            return outline.holdsLatestReceipt ? .current : nil
        }
        guard let response = answer.response else { return nil }
        if answer.refusesSecret { return .refused(claim.receiptID) }
        // A previous secret that was shared by several apps opens the receipts of the other ones too.
        if answer.usedPreviousSecret { return finding.outcome == .verified ? .previous : nil }
        let isAccepted = response.status == 0 || response.status == 21006
        return isAccepted && response.latestReceipt != nil ? .current : nil
    }
}
