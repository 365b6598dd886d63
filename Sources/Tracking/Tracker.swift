import AppStore
import Foundation
import Ledger
import Logging
import Subscriptions

/// How the tracker runs.
public struct TrackerOptions: Sendable {
    /// Divides every delay of the schedule, leeway and allowance; 1 in production, larger with an accelerated App Store.
    public var speedup: Int
    /// How long a claim is ours; a crashed worker's receipts are taken over after it.
    public var leaseSeconds: Double

    /// Options with the defaults of production.
    public init(speedup: Int = 1, leaseSeconds: Double = 60) {
        self.speedup = speedup
        self.leaseSeconds = leaseSeconds
    }
}

/// The line from a claim to what is remembered: ask Apple, find what the answer is worth, settle it.
public struct Tracker: Sendable {
    /// What is remembered.
    public let ledger: SubscriptionLedger
    let appStore: AppStoreClient
    let options: TrackerOptions
    let logger: Logger
    let identity = CheckerIdentity()

    /// A tracker that asks `appStore` and writes to `ledger`.
    public init(ledger: SubscriptionLedger, appStore: AppStoreClient, options: TrackerOptions, logger: Logger) {
        self.ledger = ledger
        self.appStore = appStore
        self.options = options
        self.logger = logger
    }

    /// Asks Apple about claimed receipts and settles what it says: this is the program.
    func check(_ claims: [Claim], by worker: WorkerID) async throws -> [Settled] {
        let settlements = await withTaskGroup(of: Settlement.self) { group in
            for claim in claims {
                group.addTask { await settlement(of: claim) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        let batch = try await ledger.settle(settlements, by: worker, speedup: options.speedup) {
            stored, evidence, policy in reconcile(stored, with: evidence, policy: policy)
        }
        for failure in batch.failures {
            logger.error("receipt \(failure.receiptID) could not be settled: \(failure.reason)")
        }
        return batch.settled
    }

    /// Ends access where the outage allowance ran out.
    func endHolds() async throws {
        try await ledger.endHolds { stored, silence, policy in
            reconcile(stored, with: silence, policy: policy)
        }
    }

    /// One claim with Apple's answer and what it is worth; never throws: an outage is an answer too.
    private func settlement(of claim: Claim) async -> Settlement {
        let answer = await answer(about: claim)
        let finding = Finding(in: answer, for: claim.app.bundleID, clock: claim.claimedAt)
        return Settlement(
            claim: claim, finding: finding, body: answer.body,
            latestReceipt: answer.response?.latestReceipt.flatMap { try? ReceiptData(normalising: $0) }?.bytes)
    }

    private func answer(about claim: Claim) async -> AppStoreAnswer {
        let endpoint = claim.environment.map(Endpoint.init) ?? .production
        do {
            let secrets = try ledger.secrets(of: claim.app)
            return await appStore.verify(
                AppStoreRequest(
                    receipt: Data(claim.receipt).base64EncodedString(), secret: secrets.current,
                    previousSecret: secrets.previous, askFirst: endpoint, sandboxAllowed: claim.app.sandboxAllowed))
        } catch {
            logger.error("cannot ask about receipt \(claim.receiptID): \(error)")
            return AppStoreAnswer(
                environment: endpoint, httpStatus: nil, body: [], response: nil, trouble: "\(error)", calls: 0,
                usedPreviousSecret: false, elapsedMilliseconds: 0, correlationID: nil)
        }
    }
}
