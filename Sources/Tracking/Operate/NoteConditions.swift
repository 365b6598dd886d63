import AppStore
import Subscriptions

extension Tracker {
    /// Records the problems that only answers show. `unwritten` could not be settled.
    func noteConditions(in answers: [Checked], unwritten: [SettledBatch.Failure]) {
        for (app, answers) in Dictionary(grouping: answers, by: \.claim.app.bundleID) {
            noteConditions(in: answers, of: app)
        }
        seeClocks(of: answers)
        let failed = Set(unwritten.map(\.receiptID))
        conditions.clear(answers.lazy.map(\.claim.receiptID).filter { !failed.contains($0) }.map { .unsettled($0) })
        for failure in unwritten { conditions.raise(.unsettled(failure.receiptID), by: failure.reason) }
    }

    /// Records that a clock is wrong; it is unclear from here which one.
    private func seeClocks(of answers: [Checked]) {
        let dated = answers.filter { $0.repeatsLast || $0.answer.response != nil || $0.answer.server?.contents != nil }
        guard !dated.isEmpty else { return }
        let ahead = dated.filter { $0.clock.ahead != nil }
        metrics.ahead(ahead)
        let worst = ahead.max { ($0.clock.ahead ?? .zero) < ($1.clock.ahead ?? .zero) }
        conditions.see(
            .clock,
            worst.map { "receipt \($0.claim.receiptID): \(($0.clock.ahead?.milliseconds ?? 0) / 1_000) s ahead" })
    }

    private func noteConditions(in answers: [Checked], of app: BundleID) {
        let asked = answers.filter { $0.answer.calls > 0 }
        if !asked.isEmpty { conditions.see(.noAnswers(app), asked.lazy.compactMap(\.silence).first) }
        for verdict in asked.lazy.compactMap(\.answer.server) where verdict.fault != nil || verdict.contents != nil {
            conditions.see(.serverAPI(app), verdict.fault)
        }
        let read = answers.filter { !$0.repeatsLast }
        if !read.isEmpty { conditions.see(.unreadableRows(app), read.lazy.compactMap(\.unreadableRow).first) }
    }
}

extension Checked {
    /// Why there was no answer, in the network's own words, which are for the log only.
    fileprivate var silence: String? {
        if let verdict = answer.server, !verdict.isFailure { return nil }
        guard !repeatsLast, answer.response == nil, let failure = answer.failureInFull else { return nil }
        return "receipt \(claim.receiptID): \(failure)"
    }

    /// The first row of the answer that cannot be read: Apple may have changed its format.
    fileprivate var unreadableRow: String? {
        let texts = serverEvidence?.isComplete == true ? nil : answer.server?.contents?.unreadableTexts
        return (answer.response?.unreadableRows.first ?? texts?.first).map { "receipt \(claim.receiptID), \($0)" }
    }
}

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

    /// Records what Apple says against an app's secret in each environment: who knows of one pause hears of the other.
    private func see(secretsOf app: App) {
        let asked = app.verifier == .verifyReceipt ? "nothing is asked there" : "only the Server API is asked there"
        for environment in [StoreEnvironment.production, .sandbox] {
            let isRefused = app.secretPauses[environment] != nil
            conditions.see(.wrongSecret(app.bundleID, environment), isRefused ? asked : nil)
        }
        let previous = StoreEnvironment.allCases.filter { app.previousSecrets[$0] != nil }.map(\.rawValue)
        conditions.see(
            .previousSecret(app.bundleID), previous.isEmpty ? nil : "in \(previous.joined(separator: " and "))")
        let doubts = app.secretDoubts.map {
            "Apple refused it about \($0.shown) in \($0.environment.rawValue), and \($0.why)"
        }
        conditions.see(.wrongSecret(app.bundleID, nil), doubts.isEmpty ? nil : doubts.joined(separator: "; "))
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
    /// Why it is not known whether the secret is wrong, as the end of a sentence.
    package var why: String {
        isUntold
            ? "no stored receipt that Apple vouches for has a subscription there, to try it on"
            : "accepted it about none since it was stored"
    }

    /// How many receipts were refused, in words.
    package var shown: String {
        (receipts == Self.receiptsMax ? "at least " : "") + receipts.of("receipt", "receipts")
    }
}
