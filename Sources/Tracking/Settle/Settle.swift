import Postgres
import SQL
package import Subscriptions

extension LedgerSettlements {
    /// Settles the answers of one worker in one transaction. An answer that equals the last one about its receipt, in
    /// its bytes or in what it says, only moves clocks, at a fraction of the cost.
    package func settle(_ answers: [PendingAnswer]) async throws -> SettledBatch {
        var equal: [EqualAnswer] = []
        var interpreted: [Int64: Settlement] = [:]
        for answer in answers {
            if let repeated = EqualAnswer(answer) {
                equal.append(repeated)
            } else {
                let settlement = Settlement(interpreting: answer)
                interpreted[answer.claim.leaseToken] = settlement
                if let repeated = EqualAnswer(settlement) { equal.append(repeated) }
            }
        }
        let confirmed = try await confirm(equal)
        let news = answers.filter { !confirmed.contains($0.claim.receiptID) }
        var batch = try await settleInFull(
            news.map { interpreted[$0.claim.leaseToken] ?? Settlement(interpreting: $0) })
        batch.confirmed = confirmed
        return batch
    }

    /// Settles interpreted answers. A batch that collides with another one is tried again from memory, then in halves,
    /// so that one bad receipt never fails the others. After a commit whose outcome is unknown the same batch is sent
    /// again: a no-op when that commit succeeded, because equal evidence changes nothing and the lease is gone.
    func settleInFull(_ batch: [Settlement]) async throws -> SettledBatch {
        guard !batch.isEmpty else { return SettledBatch() }
        let readNotification = ledger.readNotification
        do {
            let settled = try await repeating(while: mayRepeatSettlement) {
                try await database.transaction { transaction in
                    var run = try SettlementRun(batch, reading: readNotification, in: transaction)
                    run.fold()
                    return try run.write(in: transaction)
                }
            }
            return SettledBatch(settled: settled)
        } catch  where batch.count > 1 && !(error as? DatabaseError).isUnreachable {
            return try await settleInHalves(batch)
        } catch is PollersChanged {
            throw PollersChanged.lasting
        }
    }

    private func settleInHalves(_ batch: [Settlement]) async throws -> SettledBatch {
        let middle = batch.count / 2
        var both = SettledBatch()
        for half in [batch[..<middle], batch[middle...]] {
            do {
                let settled = try await settleInFull(Array(half))
                both.settled += settled.settled
                both.failures += settled.failures
            } catch {
                both.failures += half.map { SettledBatch.Failure(receiptID: $0.claim.receiptID, reason: "\(error)") }
            }
        }
        return both
    }
}

/// The result of settling a batch.
package struct SettledBatch: Sendable {
    /// A receipt whose answer could not be written; its lease runs out and it is asked about again.
    package struct Failure: Sendable {
        package let receiptID: ReceiptID
        /// One sentence.
        package let reason: String
    }

    /// The receipts whose answers equal the last ones; only their clocks moved.
    package var confirmed: Set<ReceiptID> = []
    /// The committed settlements of the answers that were interpreted.
    package var settled: [Settled] = []
    package var failures: [Failure] = []
}

private let settlementAttemptsMax = 3

/// Attempts at one settlement while other transactions change the pollers of its subscriptions.
private let pollersChangedMax = 10

/// Whether the same settlement, sent again, can succeed without harm.
private func mayRepeatSettlement(after error: any Error, tries: Int) -> Bool {
    if error is PollersChanged { return tries < pollersChangedMax }
    return (error as? DatabaseError)?.isWorthRepeating == true && tries < settlementAttemptsMax
}

extension DatabaseError {
    /// Whether the same transaction, sent again, can succeed without harm.
    fileprivate var isWorthRepeating: Bool {
        switch kind {
        case .commitUnknown, .connectionLost: true
        case .server: isSerializationFailure
        case .cannotConnect, .timedOut, .queueFull, .closed, .cancelled, .decoding: false
        }
    }
}

extension DatabaseError? {
    /// Whether the database itself is unreachable, so that smaller batches would not help.
    fileprivate var isUnreachable: Bool {
        switch self?.kind {
        case .cannotConnect, .connectionLost, .commitUnknown, .closed, .cancelled, .queueFull: true
        case .server, .timedOut, .decoding, nil: false
        }
    }
}

/// The result of one check, after its commit.
package struct Settled: Sendable {
    /// One subscription of the receipt.
    package struct SubscriptionOutcome: Sendable {
        package let id: OriginalTransactionID
        package let environment: StoreEnvironment
        /// Its verdict at the answer's own clock.
        package let verdict: Verdict
        /// The events of this settlement, in order.
        package let events: [Event]
        /// The results of the uploads' claims to it, by customer.
        package let ownership: [AppCustomerID: OwnershipAnswer]
    }

    /// Whether asking again can help.
    package enum Repetition: Sendable, Hashable {
        /// There is nothing to ask again, or it is of no use.
        case vain
        /// It may help later.
        case later
        /// Apple has a temporary problem of its own (21100 to 21199), which often passes in seconds.
        case soon
    }

    package let receiptID: ReceiptID
    /// How Apple's answer counts; a refusal during an incident of the app is indeterminate.
    package let outcome: Outcome
    /// One sentence: why it was not verified, or a remark about a verified answer.
    package let reason: String?
    package let refusal: Refusal.Kind?
    /// What Apple's refusal or failure says about asking again.
    package let repetition: Repetition
    /// Why the contents are believed to be the sender's.
    package let vouching: Vouching
    /// The orders for which the receipt was sent before the settlement.
    package let orderIDs: Set<String>
    /// The receipt's subscriptions, by id; empty unless verified.
    package let subscriptions: [SubscriptionOutcome]
    /// Events of its one-time purchases, in order.
    package let purchaseEvents: [Event]
    /// When Apple will be asked again; nil when the receipt needs no more checks.
    package let nextCheckAt: Instant?

    var hasEvents: Bool { !purchaseEvents.isEmpty || subscriptions.contains { !$0.events.isEmpty } }
}

/// How an answer counts.
package enum Outcome: String, Sendable {
    /// Apple vouches for the receipt; only this changes facts.
    case verified
    /// Apple does not vouch for it.
    case rejected
    /// The answer says nothing about the receipt.
    case indeterminate
}

/// Apple's answer about a claimed receipt, interpreted only where it differs from the last one.
package struct PendingAnswer: Sendable {
    package let claim: Claim
    /// Apple's answer as it came, kept with the observation.
    package let body: [UInt8]
    /// Apple's clock; nil where it cannot be believed.
    package let asOf: Instant?
    /// Recognizes an equal answer next time; nil when this answer and the next one must be interpreted.
    package let fingerprint: Fingerprint?
    fileprivate let interpret: @Sendable () -> Interpretation

    /// What an answer means.
    package struct Interpretation: Sendable {
        package let finding: Finding
        /// The newest receipt, as Apple returned it; stored with a new version only.
        package let latestReceipt: [UInt8]?
        /// How far the Server API was read; nil for an answer of verifyReceipt.
        package let server: ServerRead?

        package init(finding: Finding, latestReceipt: [UInt8]?, server: ServerRead? = nil) {
            (self.finding, self.latestReceipt, self.server) = (finding, latestReceipt, server)
        }
    }

    package init(
        claim: Claim, body: [UInt8], asOf: Instant?, fingerprint: Fingerprint?,
        interpret: @escaping @Sendable () -> Interpretation
    ) {
        (self.claim, self.body, self.asOf) = (claim, body, asOf)
        (self.fingerprint, self.interpret) = (fingerprint, interpret)
    }
}

extension EqualAnswer {
    /// Returns nil where the answer differs from the last one.
    init?(_ answer: PendingAnswer) {
        guard let fingerprint = answer.fingerprint, let asOf = answer.asOf else { return nil }
        self.init(to: answer.claim, fingerprint: fingerprint, asOf: asOf)
    }
}

extension Settlement {
    init(interpreting answer: PendingAnswer) {
        let interpretation = answer.interpret()
        self.init(
            claim: answer.claim, finding: interpretation.finding, body: answer.body,
            latestReceipt: interpretation.latestReceipt, fingerprint: answer.fingerprint,
            server: interpretation.server)
    }
}

/// An answer that was read, ready to be settled; a `PendingAnswer` with its interpretation.
struct Settlement: Sendable {
    let claim: Claim
    let finding: Finding
    let body: [UInt8]
    let latestReceipt: [UInt8]?
    var fingerprint: Fingerprint?
    var server: ServerRead?

    /// Returns the same claim without its answer, which does not count.
    func setAside(because reason: String) -> Settlement {
        let failure = CheckFailure(reason: reason, status: finding.status, retryable: true)
        return Settlement(claim: claim, finding: .indeterminate(failure), body: [], latestReceipt: nil, server: server)
    }

    /// Returns the same answer with other evidence and without its body.
    func saying(_ evidence: Evidence) -> Settlement {
        Settlement(
            claim: claim, finding: .verified(evidence), body: [], latestReceipt: latestReceipt,
            fingerprint: fingerprint, server: server)
    }

    var evidence: Evidence? { finding.evidence }

    /// Whether the body is worth storing: the body of an outage says nothing about the receipt.
    var saysSomething: Bool { finding.outcome != .indeterminate && !body.isEmpty }

    /// The environment in which Apple is asked about the receipt.
    var callEnvironment: StoreEnvironment { claim.environment ?? .production }

    /// The instant that the answer describes.
    var asOf: Instant { evidence?.asOf ?? claim.claimedAt }

    var subscriptionKeys: [SubscriptionRowKey] {
        guard let evidence else { return [] }
        return evidence.subscriptions.map {
            SubscriptionRowKey(appID: claim.app.id, environment: evidence.environment, id: $0)
        }
    }

    var purchases: [(key: PurchaseRowKey, evidence: PurchaseEvidence)] {
        guard let evidence else { return [] }
        return evidence.purchases.map {
            (PurchaseRowKey(appID: claim.app.id, environment: evidence.environment, purchase: $0.key), $0)
        }
    }
}

/// A subscription's natural key.
struct SubscriptionRowKey: Hashable, Comparable, Sendable {
    let appID: Int32
    let environment: StoreEnvironment
    let id: OriginalTransactionID

    /// The name of its stream of events.
    var stream: String { "subscription/\(appID)/\(environment.rawValue)/\(id)" }

    static func < (left: SubscriptionRowKey, right: SubscriptionRowKey) -> Bool {
        (left.appID, left.environment.rawValue, left.id) < (right.appID, right.environment.rawValue, right.id)
    }

    /// The keys as columns: apps, environments, ids.
    static func parameters(_ keys: [SubscriptionRowKey]) -> [Parameter] {
        [.int4s(keys.map(\.appID)), .texts(keys.map(\.environment.rawValue)), .texts(keys.map(\.id.text))]
    }
}

extension SubscriptionRowKey {
    init(subject row: Row) throws {
        self.init(
            appID: try row.int4("app_id"), environment: try row.word("environment"),
            id: OriginalTransactionID(try row.text("original_transaction_id")))
    }
}

/// A one-time purchase's natural key.
struct PurchaseRowKey: Hashable, Comparable, Sendable {
    let appID: Int32
    let environment: StoreEnvironment
    let purchase: PurchaseKey

    /// The original transaction that it is about, as notifications name it.
    var subject: SubscriptionRowKey {
        SubscriptionRowKey(appID: appID, environment: environment, id: purchase.originalTransactionID)
    }

    /// The name of its stream of events.
    var stream: String {
        "purchase/\(appID)/\(environment.rawValue)/\(purchase.originalTransactionID)/\(purchase.productID)"
    }

    static func < (left: PurchaseRowKey, right: PurchaseRowKey) -> Bool {
        (left.appID, left.environment.rawValue, left.purchase) < (
            right.appID, right.environment.rawValue, right.purchase
        )
    }

    /// The keys as columns: apps, environments, ids, products.
    static func parameters(_ keys: [PurchaseRowKey]) -> [Parameter] {
        [
            .int4s(keys.map(\.appID)), .texts(keys.map(\.environment.rawValue)),
            .texts(keys.map(\.purchase.originalTransactionID.text)), .texts(keys.map(\.purchase.productID.text)),
        ]
    }
}

extension App {
    func accelerated(by speedup: Int) -> App {
        var app = self
        app.speedup = speedup
        return app
    }

    /// The app's tolerances in one environment, divided by the speed-up.
    package func policy(for environment: StoreEnvironment) -> Policy {
        var policy = Policy.standard(for: environment, speedup: speedup)
        let leeway =
            switch environment {
            case .production: leeway
            case .sandbox: sandboxLeeway
            }
        policy.leeway = Delay(milliseconds: leeway.milliseconds / Int64(policy.speedup))
        policy.preCheckSpread = preCheckSpread
        policy.outageAllowance = Delay(milliseconds: outageAllowance.milliseconds / Int64(policy.speedup))
        policy.sweepStretch = sweep.stretch
        return policy
    }
}
