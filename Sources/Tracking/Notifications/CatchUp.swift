import AppStore
import Ledger
import Subscriptions

extension Tracker {
    /// The name of the job in the log.
    static let catchingUp = "catch up with notifications"
    /// The longest wait for the app's budget of calls with the history in hand, in seconds.
    private static let waitSecondsMax = 5.0
    /// How many days later a stretch begins that Apple finds too old.
    private static let stepDays = 10

    /// Reads the due stretch of a history of notifications and stores what had not arrived. Returns false where none is due.
    ///
    /// Each page is stored before the place moves, so that a page is read again rather than left out.
    func catchUp(as worker: WorkerID) async throws -> Bool {
        guard let client = notificationHistory,
            var turn = try await ledger.intake.takeCatchUp(for: worker, leaseSeconds: options.leaseSeconds)
        else { return false }
        let app = try await ledger.apps.app(turn.app.bundleID)
        while !isStopping() {
            if let seconds = try await ledger.claims.takeCall(.notifications, of: app, in: turn.environment) {
                guard seconds <= Self.waitSecondsMax else {
                    try await ledger.intake.rest(turn, seconds: seconds, because: "Apple asks for fewer requests.")
                    return true
                }
                await rest(seconds: seconds)
                continue
            }
            guard let request = request(for: turn, of: app) else {
                try await fail(turn, "The app's server key cannot be read here; the log says why.")
                return true
            }
            let answer = await client.read(request)
            guard case .page(let texts, let next) = answer else {
                try await heed(answer, turn, of: app)
                return true
            }
            if let fault = try await store(texts, of: turn) {
                try await fail(turn, fault)
                return true
            }
            conditions.clear(.notificationHistory(app.bundleID, turn.environment))
            guard try await ledger.intake.move(turn, to: next, leaseSeconds: options.leaseSeconds), next != nil
            else { return true }
            turn.page = next
        }
        try await ledger.intake.rest(turn, seconds: 0, because: nil)
        return true
    }

    private func request(for turn: CatchUp, of app: App) -> NotificationHistoryRequest? {
        do {
            guard let stored = try ledger.apps.serverKey(of: app) else { return nil }
            let key = ServerKey(
                pem: stored.pem, id: stored.name.id, issuer: stored.name.issuer ?? "", bundleID: app.bundleID.text)
            return NotificationHistoryRequest(
                key: key, environment: Endpoint(turn.environment), from: turn.from.milliseconds,
                until: turn.until.milliseconds, onlyFailures: turn.kind == .failures, page: turn.page)
        } catch {
            conditions.raise(.sealedSecret(app.bundleID), by: "\(error)")
            return nil
        }
    }

    /// Stores the texts of a page like pushed ones. Returns why one of them cannot be believed: then all others are stored.
    private func store(_ texts: [[UInt8]], of turn: CatchUp) async throws -> String? {
        var fault: String?
        for text in texts {
            switch try await receive(text, for: turn.app, from: .history) {
            case .verified(let notification):
                try await ledger.intake.keep(notification, for: turn.app, from: .history)
            case .unverified(let reason):
                fault = fault ?? "A notification in Apple's history cannot be verified. \(reason)"
            }
        }
        return fault
    }

    /// Plans another attempt after an answer without a page.
    private func heed(_ answer: NotificationHistoryAnswer, _ turn: CatchUp, of app: App) async throws {
        switch answer {
        case .page: break
        case .placeLost:
            let reason = "Apple does not know the place in its history any more; the stretch is read again."
            try await ledger.intake.rest(
                turn, seconds: ledger.intake.retrySeconds(of: turn), because: reason, anew: true)
        case .startTooOld:
            try await ledger.intake.rest(turn, seconds: 0, because: nil, anew: true, daysLater: Self.stepDays)
        case .failed(let sentence, let seconds):
            if let seconds {
                try await ledger.claims.pauseCalls(.notifications, of: app, in: turn.environment, seconds: seconds)
            }
            try await fail(turn, sentence)
        }
    }

    private func fail(_ turn: CatchUp, _ sentence: String) async throws {
        conditions.raise(.notificationHistory(turn.app.bundleID, turn.environment), by: sentence)
        try await ledger.intake.rest(turn, seconds: ledger.intake.retrySeconds(of: turn), because: sentence)
    }
}

extension Worker {
    /// Seconds between two looks for a history that is due.
    private static let historyLookSeconds = 1.0

    /// Reads Apple's histories of notifications at the start and whenever they are due, until shutdown.
    func keepCatchingUp(as worker: WorkerID) async {
        await tracker.attempt(Tracker.catchingUp) { try await tracker.ledger.intake.hastenCatchUps() }
        while !isStopping() {
            let found = await tracker.attempt(Tracker.catchingUp) { try await tracker.catchUp(as: worker) }
            if found != true { await rest(seconds: Self.historyLookSeconds) }
        }
    }
}
