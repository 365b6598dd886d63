import Ledger
import Subscriptions

extension Tracker {
    /// Sees what the database knows of apps, whichever process wrote it: pauses, slow-downs and incidents.
    func seeStandings() async {
        await attempt("see how apps stand") {
            let apps = try await ledger.apps()
            // Those that run come first, and an app has one at most.
            let incidents = try await ledger.incidents(limit: apps.count).filter { $0.closedAt == nil }
            let isAppleAway = apps.first.map { $0.appleFailures > CallPace.failuresTolerated } ?? false
            let whyAway = apps.lazy.compactMap(\.pause?.reason).first ?? "a few receipts are tried"
            troubles.see(.appStore, isAppleAway ? whyAway : nil)
            for app in apps {
                // Then each app waits for the same reason, which is logged once.
                if !isAppleAway { see(pauseOf: app) }
                troubles.see(.slowness(app.bundleID), app.slowness)
                let incident = incidents.first { $0.bundleID == app.bundleID }
                troubles.see(.incident(app.bundleID), incident.map(\.sum))
            }
        }
    }

    /// A pause for a wrong secret that this process knows of is logged as that alone.
    private func see(pauseOf app: App) {
        guard !troubles.stands(.wrongSecret(app.bundleID)) else { return }
        let isFailing = app.pace.failures > CallPace.failuresTolerated
        let reason = app.pause?.reason ?? (isFailing ? "most calls fail; a few receipts are tried" : nil)
        troubles.see(.pause(app.bundleID), reason)
    }
}

extension App {
    /// How much more slowly it is asked about than it may be; nil at full pace.
    fileprivate var slowness: String? {
        guard callsPerSecondNow != callsPerSecond else { return nil }
        let most = callsPerSecond == 0 ? "any number" : "\(callsPerSecond)"
        return "\((callsPerSecondNow * 10).rounded() / 10) calls a second of \(most)"
    }
}

extension Incident {
    /// What it rests on.
    fileprivate var sum: String { "\(refused) of \(asked) answers: \(lastReason)" }
}
