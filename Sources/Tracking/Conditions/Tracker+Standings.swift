package import Ledger
import Subscriptions

extension Tracker {
    /// Records what the database knows about apps, whichever process wrote it: pauses, slow-downs and incidents.
    func seeStandings() async {
        await attempt("see how apps stand") {
            let apps = try await ledger.apps.all()
            // Open incidents come first, and an app has at most one.
            let incidents = try await ledger.admin.incidents(limit: apps.count).filter { $0.closedAt == nil }
            let isAppleAway = apps.first.map { $0.appleFailures > CallRateLimit.failuresTolerated } ?? false
            let whyAway = apps.lazy.compactMap(\.pause?.reason).first ?? "a few receipts are tried"
            conditions.see(.appStore, isAppleAway ? whyAway : nil)
            for app in apps {
                see(secretsOf: app)
                // While Apple answers about no app, each app waits for the same reason, which is logged once.
                if !isAppleAway { see(pauseOf: app) }
                conditions.see(.slowness(app.bundleID), app.slowness)
                let incident = incidents.first { $0.bundleID == app.bundleID }
                conditions.see(.incident(app.bundleID), incident.map(\.sum))
            }
        }
    }

    /// Records what Apple says against an app's shared secret, in each environment on its own: an operator who knows of
    /// the sandbox's pause hears of production's.
    private func see(secretsOf app: App) {
        let asked = app.verifier == .verifyReceipt ? "nothing is asked there" : "only the Server API is asked there"
        for environment in [StoreEnvironment.production, .sandbox] {
            let isRefused = app.secretPauses[environment] != nil
            conditions.see(.wrongSecret(app.bundleID, environment), isRefused ? asked : nil)
        }
        let doubts = app.secretDoubts.map { "refused about \($0.shown) in \($0.environment.rawValue)" }
        conditions.see(
            .wrongSecret(app.bundleID, nil),
            doubts.isEmpty
                ? nil : "\(doubts.joined(separator: ", and ")); no receipt with a subscription can prove it there")
    }

    /// Records a pause of all checks of an app.
    private func see(pauseOf app: App) {
        let isFailing = app.rateLimit.failures > CallRateLimit.failuresTolerated
        let calls = app.verifier == .serverAPI ? app.callPauses.values.first?.reason : nil
        let reason = app.pause?.reason ?? calls ?? (isFailing ? "most calls fail; a few receipts are tried" : nil)
        conditions.see(.pause(app.bundleID), reason)
    }
}

extension App {
    /// How much slower the app's calls are than allowed; nil at the full rate.
    fileprivate var slowness: String? {
        guard callsPerSecondNow != callsPerSecond else { return nil }
        let most = callsPerSecond == 0 ? "any number" : "\(callsPerSecond)"
        return "\((callsPerSecondNow * 10).rounded() / 10) calls a second of \(most)"
    }
}

extension Incident {
    /// The evidence of the incident.
    fileprivate var sum: String { "\(refused) of \(asked) answers: \(lastReason)" }
}

extension App.SecretDoubt {
    /// How many receipts were refused, in words.
    package var shown: String {
        (receipts == Self.receiptsMax ? "at least " : "") + receipts.of("receipt", "receipts")
    }
}
