import Postgres
import SQL
package import Subscriptions
import Synchronization

/// A shared secret that is to be tried now, on a receipt that is known to be of the app.
///
/// Apple also answers 21004 about a receipt of another app, which any device can send. So one 21004 pauses nothing: this
/// trial decides.
package struct SecretTrial: Sendable {
    /// The app.
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
