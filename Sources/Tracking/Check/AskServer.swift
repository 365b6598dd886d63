import AppStore
import Crypto
import Foundation
import Logging
import Postgres
import SQL
import Subscriptions
import Synchronization

extension Tracker {
    /// Asks the Server API about a claimed receipt. Never throws: without a key too, there is an answer that says so.
    func serverAnswer(about claim: Claim, _ question: ServerQuestion) async -> AppStoreAnswer {
        let environment = claim.environment ?? .production
        guard let id = question.transactionID else {
            return .unasked("No transaction id of it is known.", environment)
        }
        if let pause = claim.app.callPauses[claim.environment ?? .production], pause.isOfKey {
            return .heldBack(from: environment, because: pause.reason)
        }
        let key: ServerKey
        do {
            guard let stored = try ledger.apps.serverKey(of: claim.app) else {
                let sentence = ServerKeyText.missing(of: claim.app.bundleID)
                conditions.raise(.serverKey(claim.app.bundleID), by: sentence)
                return .unasked(sentence, environment)
            }
            conditions.clear(.serverKey(claim.app.bundleID))
            key = ServerKey(stored, of: claim.app)
        } catch {
            conditions.raise(.serverKey(claim.app.bundleID), by: "\(error)")
            return .unasked("The app's server key cannot be read here; the log says why.", environment)
        }
        let app = claim.app
        let answer = await appStore.server.read(
            ServerRequest(
                key: key, appleAppID: app.appleAppID, transactionID: id,
                signedText: claim.form == .signedTransaction ? claim.receipt : nil, revision: question.revision,
                askFirst: environment, isFirstSight: claim.environment == nil, sandboxAllowed: app.sandboxAllowed,
                turn: { await takeCall(CallKind($1), of: app, in: $0) }))
        await heed(answer, of: app)
        return answer
    }

    /// Stops calls where Apple asks for it (4290000), and so the claims of an app that asks nothing else.
    private func heed(_ answer: AppStoreAnswer, of app: App) async {
        guard answer.httpStatus == 429, let seconds = answer.retryAfterSeconds, seconds > 0,
            let endpoint = answer.lastEndpoint
        else { return }
        await attempt("wait as Apple asks") {
            try await ledger.claims.pauseCalls(CallKind(endpoint), of: app, in: answer.environment, seconds: seconds)
        }
    }
}

extension AppStoreAnswer {
    fileprivate static func unasked(_ sentence: String, _ environment: StoreEnvironment) -> AppStoreAnswer {
        AppStoreAnswer(environment: environment, server: .noAnswer(sentence, code: nil), httpStatus: nil, calls: 0)
    }

    /// Whether verifyReceipt said what it thinks of the receipt.
    var isVerdict: Bool {
        switch response?.status {
        case 0, 21003, 21006, 21007, 21008, 21010: httpStatus == 200
        case .some, nil: false
        }
    }
}

extension CallKind {
    fileprivate init(_ endpoint: ServerEndpoint) {
        switch endpoint {
        case .statuses: self = .statuses
        case .history: self = .history
        case .transaction: self = .transactions
        }
    }
}

extension ServerKey {
    init(_ stored: ServerKeyText, of app: App) {
        self.init(pem: stored.pem, id: stored.name.id, issuer: stored.name.issuer ?? "", bundleID: app.bundleID.text)
    }
}

/// Whether, by which transaction, and from where on the Server API is asked about a claimed receipt.
struct ServerQuestion: Sendable, Hashable {
    let asksServer: Bool
    /// Whether verifyReceipt is asked first, to vouch for the receipt: its bytes can be edited.
    let vouchesFirst: Bool
    /// Whether both channels are asked, to compare what they say.
    let compares: Bool
    /// The transaction to ask by; nil where none is known.
    let transactionID: String?
    /// The revision after which the history is read; nil: from its start.
    let revision: String?

    init(about claim: Claim) {
        let isReceipt = claim.form == .receipt
        let wantsServer = !isReceipt || claim.app.verifier != .verifyReceipt
        transactionID =
            wantsServer ? claim.transactionID?.text ?? Self.localTransactionID(of: claim.receipt, isReceipt) : nil
        // A receipt without purchases gives no id.
        asksServer = wantsServer && (transactionID != nil || !isReceipt)
        compares = isReceipt && claim.app.verifier == .both && claim.environment != nil && asksServer
        vouchesFirst =
            isReceipt && claim.app.hasSecret
            && (claim.app.verifier == .both || !claim.isVouched && claim.fingerprint == nil)
        // Only everything can be compared with everything.
        revision = compares ? nil : claim.historyRevision
    }

    private static func localTransactionID(of receipt: [UInt8], _ isReceipt: Bool) -> String? {
        guard isReceipt, let local = LocalReading(of: receipt).receipt else { return nil }
        return local.purchases.lazy.map(\.originalTransactionID).first { $0 != "0" }
    }
}

extension Finding {
    /// Determines the outcome of what the Server API said; `evidence` is what its verified texts state.
    init(_ verdict: ServerVerdict, evidence: Evidence?) {
        let reason = verdict.sentence ?? "Apple's answer holds nothing about the transaction."
        func failure(retryable: Bool = true, _ kind: CheckFailure.Kind = .noUsableAnswer) -> Finding {
            .indeterminate(CheckFailure(reason: reason, status: verdict.code, retryable: retryable, kind: kind))
        }
        func refusal(_ kind: Refusal.Kind, retryable: Bool) -> Finding {
            .rejected(Refusal(reason: reason, status: verdict.code, retryable: retryable, kind: kind))
        }
        switch verdict {
        case .answered: self = evidence.map(Finding.verified) ?? failure()
        case .unknownTransaction: self = refusal(.unknownTransaction, retryable: true)
        case .idRefused: self = refusal(.badRequest, retryable: false)
        case .otherSubject: self = refusal(.otherBundle, retryable: false)
        case .keyRefused, .appRefused: self = failure(.appRefused)
        case .unverified, .ourFault, .noAnswer: self = failure()
        }
    }
}

extension ServerRead {
    init(_ contents: ServerContents) {
        self.init(
            beginsAtStart: contents.transactions != nil && contents.from == nil, revision: contents.revision,
            goesOn: contents.goesOn)
    }
}

/// How far an answer of the Server API reads a customer's transactions.
package struct ServerRead: Sendable, Hashable {
    package let beginsAtStart: Bool
    /// Where the next read of the history begins; nil: no history was read.
    package let revision: String?
    /// Whether the history goes on after what was read.
    package let goesOn: Bool

    /// An answer that holds no transactions.
    package static let nothing = ServerRead(beginsAtStart: false, revision: nil, goesOn: false)

    /// Whether it holds all transactions. Otherwise what it lacks is as it was.
    var isWhole: Bool { beginsAtStart && !goesOn }
}

/// Why the contents of an upload are believed to be its sender's.
package enum Vouching: String, Sendable, CaseIterable {
    /// verifyReceipt vouched for the receipt.
    case vouched
    /// Apple signed the transaction.
    case signed
    /// Nothing: the sender named a transaction, which needs only its id.
    case pointer

    init(_ form: SubmittedForm, isVouched: Bool) {
        switch form {
        case .receipt: self = isVouched ? .vouched : .pointer
        case .signedTransaction: self = .signed
        case .transactionID: self = .pointer
        }
    }
}

extension Settlement {
    /// When the next read of a history begins after an unfinished one, and the first after verifyReceipt vouched.
    static let nextPageDelay = Delay.seconds(1)

    /// Whether verifyReceipt answered only to vouch for the receipt: its app asks the Server API, which says more.
    var isOnlyVouching: Bool { claim.form == .receipt && claim.app.verifier == .serverAPI && server == nil }

    var vouching: Vouching {
        Vouching(claim.form, isVouched: claim.isVouched || (server == nil && evidence != nil))
    }

    /// Whether it names all subscriptions that Apple still lists. The statuses of the Server API always do. What cannot
    /// be read may name any.
    var listsSubscriptions: Bool { evidence?.isComplete == true && server?.goesOn != true }

    /// Whether everything that the answer lacks does not exist.
    var speaksForAll: Bool { evidence != nil && server?.isWhole ?? true }

    /// Where the next read of the history begins; nil: as before. The last part of a history is read from the same
    /// place again as long as some of it cannot be read, because it would not repeat itself.
    var newRevision: String? {
        guard let evidence, evidence.isComplete || server?.goesOn == true else { return nil }
        return server?.revision
    }

    /// A transaction id by which the Server API can be asked; nil where one is stored, and without evidence.
    var newTransactionID: TransactionID? {
        guard claim.transactionID == nil, let evidence else { return nil }
        return evidence.transactions.max { ($0.purchasedAt, $0.path) < ($1.purchasedAt, $1.path) }
            .map { TransactionID($0.originalTransactionID.text) }
    }
}

extension SubscriptionLedger {
    /// Returns the numbers of headers of verified texts, and stores new ones: Apple signs with a few keys at a time.
    package func chainNumbers(of headers: Set<String>) async throws -> [String: Int32] {
        let known = knownChains.numbers(of: headers)
        let unknown = headers.filter { known[$0] == nil }
        guard !unknown.isEmpty else { return known }
        let digests = unknown.map { (header: $0, digest: Array(SHA256.hash(data: Data($0.utf8)))) }
            .sorted { $0.digest.lexicographicallyPrecedes($1.digest) }
        let keys = Parameter.byteas(digests.map(\.digest))
        var rows = try await query(Queries.findChains, keys)
        if rows.count < unknown.count {
            _ = try await write(Queries.storeChains, .texts(digests.map(\.header)), keys)
            rows = try await query(Queries.findChains, keys)
        }
        let found = try Dictionary(rows.map { (try $0.text("header"), try $0.int4("chain_id")) }) { first, _ in first }
        knownChains.remember(found)
        return known.merging(found) { first, _ in first }
    }
}

/// A bounded memory of the numbers of headers.
final class KnownChains: Sendable {
    /// The most headers; each has some 4,400 bytes.
    static let headersMax = 256

    private let memory = Mutex<[String: Int32]>([:])

    func numbers(of headers: Set<String>) -> [String: Int32] {
        memory.withLock { memory in memory.filter { headers.contains($0.key) } }
    }

    /// Remembers numbers. A full memory begins anew: Apple has few headers.
    func remember(_ numbers: [String: Int32]) {
        memory.withLock { memory in
            memory.merge(numbers) { first, _ in first }
            if memory.count > Self.headersMax { memory = numbers }
        }
    }
}
