import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    /// Writes the facts that were learnt about the receipts themselves.
    func writeReceipts(_ plans: [ReceiptPlan], _ kept: [KeptObservation], in transaction: Transaction) throws {
        let observations = Dictionary(kept.map { ($0.settlement.claim.receiptID, $0) }) { _, last in last }
        let settlements = plans.map(\.settlement)
        let findings = settlements.map(\.finding)
        let vouched = vouchedAgain(settlements)
        try transaction.query(
            Queries.writeReceipts,
            [
                .int8s(settlements.map(\.claim.receiptID.number)),
                .texts(settlements.map { $0.evidence?.environment.rawValue }),
                .instants(settlements.map { $0.evidence?.receiptCreatedAt }),
                .byteas(settlements.map { storesLatestReceipt($0) ? $0.latestReceipt : nil }),
                .texts(plans.map { $0.isForWrongSecret ? nil : $0.settlement.finding.outcome.rawValue }),
                .texts(findings.map(\.reason)),
                .timestamptzs(settlements.map { _ in recordedMicroseconds }),
                .timestamptzs(settlements.map { $0.evidence == nil ? nil : recordedMicroseconds }),
                .int2s(plans.map { Int16(clamping: $0.rejections) }), .instants(plans.map(\.rejectedSince)),
                .int2s(plans.map { Int16(clamping: $0.emptyAnswers) }),
                .int8s(settlements.map { observations[$0.claim.receiptID]?.id }),
                .timestamptzs(settlements.map { observations[$0.claim.receiptID]?.recordedAt }),
                .byteas(settlements.map { observations[$0.claim.receiptID]?.meaning.digest }),
                .int8s(settlements.map(\.claim.leaseToken)), .int4s(vouched.map(\.app)),
                .int8s(vouched.map(\.answers)), .bools(plans.map(\.forgetsLatest)),
            ])
    }

    /// Gives back the leases that this worker still has, with the time of the next check, and pauses apps with a wrong
    /// secret. Returns the receipts that were rescheduled.
    func writeSchedules(_ plans: [ReceiptPlan], in transaction: Transaction) throws -> Set<ReceiptID> {
        var due: [(ReceiptPlan, Instant)] = []
        var retired: [ReceiptPlan] = []
        for plan in plans {
            switch plan.next {
            case .at(let instant): due.append((plan, instant))
            case .retired: retired.append(plan)
            }
        }
        let worker = Parameter.int4(batch.first?.claim.worker.number)
        let rows = try transaction.query(
            Queries.reschedule,
            [
                worker, .int8s(due.map(\.0.settlement.claim.receiptID.number)),
                .int8s(due.map(\.0.settlement.claim.leaseToken)), .instants(due.map(\.1)),
                .texts(due.map(\.0.lane.rawValue)), .int2s(due.map { Int16(clamping: max(0, $0.0.attempts)) }),
                .byteas(due.map { $0.0.fingerprint?.bytes }),
                .texts(due.map(\.0.purchases.text)), .int8s(due.map(\.0.purchases.versions)),
                .bools(due.map { $0.0.settlement.evidence == nil }),
            ])
        if !retired.isEmpty {
            try transaction.query(
                Queries.retire,
                [
                    worker, .int8s(retired.map(\.settlement.claim.receiptID.number)),
                    .int8s(retired.map(\.settlement.claim.leaseToken)),
                ])
        }
        let late = plans.map(\.settlement.claim).filter { pollers?.isLeaseLost($0) ?? false }
        if !late.isEmpty {
            try transaction.query(Queries.forgetFingerprints, [.int8s(late.map(\.receiptID.number))])
        }
        try pauseApps(plans, in: transaction)
        return try Set(rows.map { ReceiptID(try $0.int8("receipt_id")) })
    }

    private func pauseApps(_ plans: [ReceiptPlan], in transaction: Transaction) throws {
        // In the same order everywhere, because two settlements may pause the same apps.
        for app in Set(plans.filter(\.isForWrongSecret).map(\.settlement.claim.app.id)).sorted() {
            try transaction.query(
                Queries.pauseApp,
                [
                    .int4(app), .float8(Double(Self.wrongSecretPauseSeconds)),
                    .text("Apple refused the shared secret (21004); run `perennial app rotate-secret`"),
                ])
        }
    }

    /// Whether the newest receipt is stored: only with a new version, so that a mere confirmation writes little.
    private func storesLatestReceipt(_ settlement: Settlement) -> Bool {
        settlement.subscriptionKeys.contains { key in
            subscriptions[key].map { $0.version > $0.stored?.version ?? 0 } ?? false
        }
    }
}

extension ReceiptPlan {
    fileprivate var isForWrongSecret: Bool { settlement.finding.refusal == .wrongSecret }
}
