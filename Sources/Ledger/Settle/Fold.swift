import Subscriptions

extension SettlementRun {
    /// Applies the batch's evidence in the order of Apple's clocks, then the uploads' claims to ownership.
    mutating func fold(by reconcile: Reconcile) {
        for settlement in batch {
            guard let evidence = settlement.evidence else { continue }
            let app = settlement.claim.app
            let policy = app.policy(for: evidence.environment, speedup: speedup)
            if isRepeated(settlement) {
                for key in settlement.subscriptionKeys { subscriptions[key]?.policy = policy }
                continue
            }
            for key in settlement.subscriptionKeys {
                let receipt = settlement.claim.receiptID
                subscriptions[key]?.apply(evidence.slice(of: key.id), about: receipt, policy: policy, by: reconcile)
                subscriptions[key]?.offerPolling(by: receipt, createdAt: evidence.receiptCreatedAt)
            }
            for (key, purchase) in settlement.purchases {
                purchases[key]?.apply(purchase)
            }
        }
        for settlement in batch where settlement.evidence != nil && !isRepeated(settlement) {
            serveClaims(of: settlement)
        }
    }

    private mutating func serveClaims(of settlement: Settlement) {
        let receipt = settlement.claim.receiptID
        guard let claims = claims[receipt] else { return }
        for key in settlement.subscriptionKeys {
            subscriptions[key]?.serve(claims, of: receipt, policy: settlement.claim.app.ownershipPolicy)
        }
        for (key, _) in settlement.purchases {
            purchases[key]?.serve(claims, of: receipt, policy: settlement.claim.app.ownershipPolicy)
        }
    }
}
