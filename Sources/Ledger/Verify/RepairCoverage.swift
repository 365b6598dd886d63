import Postgres
import SQL
import Subscriptions

/// What a repair made of a subscription or one-time purchase.
package struct CoverageRepair: Sendable, Hashable {
    /// The receipt that was asked about it; nil for none.
    package let previous: ReceiptID?
    /// The receipt that is asked about it now; nil when none can vouch for it.
    package let receiptID: ReceiptID?
    /// When it is asked about at the latest, unless the receipt is leased; nil for never.
    package let nextCheckAt: Instant?
}

extension SubscriptionLedger {
    /// Covers what a violation is about again, in one short transaction with an audit row.
    ///
    /// What violates coverage alone keeps its time of the next check; anything else is asked about at once. Returns nil when
    /// nothing can be repaired of it. Again it changes nothing.
    package func repair(
        _ violation: Violation, _ terms: VerifyTerms, detail: [String: String] = [:]
    ) async throws -> CoverageRepair? {
        guard violation.invariant.isRepairable else { return nil }
        let apps = Dictionary(try await apps().map { ($0.id, $0) }) { first, _ in first }
        return try await changingPollers { transaction in
            var run = try SettlementRun(
                covering: violation.question, apps: apps, speedup: terms.speedup, in: transaction)
            run.review(atOnce: violation.invariant.asksAtOnce)
            try run.planPolling()
            try run.writePolling(in: transaction)
            guard let polling = run.reviewed else { return nil }
            let repair = CoverageRepair(
                previous: polling.storedPoller, receiptID: polling.poller, nextCheckAt: polling.nextCheckAt)
            let found = [
                "check": violation.invariant.rawValue, "stream_id": "\(violation.key)",
                "previous_receipt": repair.previous?.description,
            ].compactMapValues(\.self)
            try audit(
                .coverageRepaired, app: violation.bundleID, receipt: repair.receiptID,
                detail: found.merging(detail) { own, _ in own }, in: transaction)
            return repair
        }
    }
}

extension Invariant {
    /// Whether Apple has to be asked at once about what violates it.
    fileprivate var asksAtOnce: Bool {
        switch self {
        case .poller, .nextCheck, .age: true
        case .coverage, .purchaseCoverage, .facts, .timeline, .ownership, .scheduled, .wanted, .leases, .events, .feed,
            .summaries:
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
    /// Has the schedule of everything that is locked looked at although nothing was learnt of it.
    fileprivate mutating func review(atOnce: Bool) {
        let moment = atOnce ? recordedAt : nil
        for key in subscriptions.keys { subscriptions[key]?.polling.review(by: moment) }
        for key in purchases.keys { purchases[key]?.polling.review(by: moment) }
    }

    /// How the one thing that was looked at is asked about; nil when it is gone.
    fileprivate var reviewed: PollingDraft? {
        subscriptions.values.first?.polling ?? purchases.values.first?.polling
    }
}
