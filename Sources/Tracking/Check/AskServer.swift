import AppStore
import Ledger
import Logging
import Subscriptions

extension Tracker {
    /// Asks the Server API about a claimed receipt. Never throws: without a key too, there is an answer that says so.
    func serverAnswer(about claim: Claim, _ question: ServerQuestion) async -> AppStoreAnswer {
        let endpoint = claim.environment.map(Endpoint.init) ?? .production
        guard let id = question.transactionID else {
            return .unasked("No transaction id of it is known.", endpoint)
        }
        if let pause = claim.app.callPauses[claim.environment ?? .production], pause.isOfKey {
            return .heldBack(from: endpoint, because: pause.reason)
        }
        let key: ServerKey
        do {
            guard let stored = try ledger.apps.serverKey(of: claim.app) else {
                let sentence = Self.noServerKey(claim.app.bundleID)
                conditions.raise(.serverAPI(claim.app.bundleID), by: sentence)
                return .unasked(sentence, endpoint)
            }
            conditions.clear(.sealedSecret(claim.app.bundleID))
            key = ServerKey(stored, of: claim.app)
        } catch {
            conditions.raise(.sealedSecret(claim.app.bundleID), by: "\(error)")
            return .unasked("The app's server key cannot be read here; the log says why.", endpoint)
        }
        let app = claim.app
        let answer = await appStore.server.read(
            ServerRequest(
                key: key, appleAppID: app.appleAppID, transactionID: id,
                signedText: claim.form == .signedTransaction ? claim.receipt : nil, revision: question.revision,
                askFirst: endpoint, isFirstSight: claim.environment == nil, sandboxAllowed: app.sandboxAllowed,
                turn: { await turn(of: app, in: $0, for: CallKind($1)) }))
        await heed(answer, of: app)
        return answer
    }

    /// What to do where an app has no server key.
    static func noServerKey(_ bundleID: BundleID) -> String {
        "\(bundleID) has no key for the Server API; store it with `perennial app server-key --app \(bundleID)`."
    }

    /// Takes one call from the app's budget; returns the seconds to wait where it is used up. While the database is away,
    /// calls wait too.
    func turn(of app: App, in endpoint: Endpoint, for kind: CallKind) async -> Double? {
        let wait = await attempt("take a call from the budget") {
            try await ledger.claims.takeCall(kind, of: app, in: StoreEnvironment(endpoint)) ?? 0
        }
        guard let wait else { return 1 }
        return wait > 0 ? wait : nil
    }

    /// Stops calls where Apple asks for it (4290000), and so the claims of an app that asks nothing else.
    private func heed(_ answer: AppStoreAnswer, of app: App) async {
        guard answer.httpStatus == 429, let seconds = answer.retryAfterSeconds, seconds > 0,
            let endpoint = answer.lastEndpoint
        else { return }
        await attempt("wait as Apple asks") {
            try await ledger.claims.pauseCalls(
                CallKind(endpoint), of: app, in: StoreEnvironment(answer.environment), seconds: seconds)
        }
    }
}

extension AppStoreAnswer {
    /// The answer where nothing was asked.
    fileprivate static func unasked(_ sentence: String, _ endpoint: Endpoint) -> AppStoreAnswer {
        AppStoreAnswer(environment: endpoint, server: .noAnswer(sentence, code: nil), httpStatus: nil, calls: 0)
    }
}

extension CallKind {
    /// The budget from which a call of a check is taken.
    fileprivate init(_ endpoint: ServerEndpoint) {
        switch endpoint {
        case .statuses: self = .statuses
        case .history: self = .history
        case .transaction: self = .transactions
        }
    }
}

extension ServerKey {
    /// The key of an app, for the duration of a call.
    init(_ stored: ServerKeyText, of app: App) {
        self.init(
            pem: stored.pem, id: stored.name.id, issuer: stored.name.issuer ?? "", bundleID: app.bundleID.text)
    }
}
