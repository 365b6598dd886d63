import Postgres
import SQL
package import Subscriptions

/// The result of repairing a subscription or one-time purchase.
package struct CoverageRepair: Sendable, Hashable {
    /// The receipt that was asked about it before; nil for none.
    package let previous: ReceiptID?
    /// The receipt that is asked about it now; nil when none can vouch for it.
    package let receiptID: ReceiptID?
    /// The latest time of the next check, unless the receipt is leased; nil for never.
    package let nextCheckAt: Instant?
}

extension LedgerOperations {
    /// Plans the checks of a violation's subscription or purchase again, in one short transaction with an audit row.
    ///
    /// A violation of coverage alone keeps the time of the next check; for any other violation, Apple is asked at once.
    /// Returns nil when there is nothing to repair. A second repair changes nothing.
    package func repair(
        _ violation: Violation, _ terms: VerifyTerms, detail: [String: String] = [:]
    ) async throws -> CoverageRepair? {
        guard violation.invariant.isRepairable else { return nil }
        let apps = Dictionary(try await ledger.apps.all().map { ($0.id, $0.accelerated(by: terms.speedup)) }) {
            first, _ in first
        }
        return try await ledger.changingPollers { transaction in
            var run = try SettlementRun(covering: violation.question, apps: apps, in: transaction)
            run.review(atOnce: violation.invariant.asksAtOnce)
            try run.changePolling(in: transaction)
            guard let polling = run.reviewed else { return nil }
            if let poller = polling.poller {
                try transaction.query(Queries.restoreFollowUps, [.int8(poller.number)])
            }
            let repair = CoverageRepair(
                previous: polling.storedPoller, receiptID: polling.poller, nextCheckAt: polling.nextCheckAt)
            let found = [
                "check": violation.invariant.rawValue, "stream_id": "\(violation.key)",
                "previous_receipt": repair.previous?.description,
            ].compactMapValues(\.self)
            try ledger.audit(
                .coverageRepaired, app: violation.bundleID, receipt: repair.receiptID,
                detail: found.merging(detail) { own, _ in own }, in: transaction)
            return repair
        }
    }
}

extension Invariant {
    /// Whether Apple has to be asked at once after a violation.
    fileprivate var asksAtOnce: Bool {
        switch self {
        case .poller, .nextCheck, .age: true
        case .coverage, .purchaseCoverage, .facts, .timeline, .ownership, .entitlements, .deliveries, .orders,
            .scheduled, .wanted, .leases, .events, .feed, .webhooks, .summaries, .summarySums:
            false
        }
    }
}

extension Violation {
    fileprivate var question: FoundPollers.Question {
        var question = FoundPollers.Question()
        if invariant == .purchaseCoverage { question.purchases = [key] } else { question.subscriptions = [key] }
        return question
    }
}

extension SettlementRun {
    /// Requests a check of the schedule of everything locked, although no answer came.
    mutating func review(atOnce: Bool) {
        let moment = atOnce ? recordedAt : nil
        for key in subscriptions.keys { subscriptions[key]?.polling.review(by: moment) }
        for key in purchases.keys { purchases[key]?.polling.review(by: moment) }
    }

    /// The polling of the reviewed subscription or purchase; nil when it is gone.
    fileprivate var reviewed: PollingDraft? {
        subscriptions.values.first?.polling ?? purchases.values.first?.polling
    }
}
