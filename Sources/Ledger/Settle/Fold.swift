import Subscriptions

extension SettlementRun {
    /// Applies the batch's evidence in the order of Apple's clocks, then the uploads' claims to ownership.
    mutating func fold() {
        for settlement in batch {
            guard let evidence = settlement.evidence else { continue }
            let app = settlement.claim.app
            let policy = app.policy(for: evidence.environment)
            if isRepeated(settlement) {
                for key in settlement.subscriptionKeys { subscriptions[key]?.policy = policy }
                continue
            }
            let before = evidence.beforeMoves(among: known(of: settlement, evidence))
            for key in settlement.subscriptionKeys {
                for slice in [before[key.id], evidence.slice(of: key.id)].compactMap(\.self) {
                    subscriptions[key]?.apply(slice, about: settlement.claim.receiptID, policy: policy)
                }
            }
            moveLineItems(of: settlement, evidence, policy: policy)
            for (key, purchase) in settlement.purchases {
                purchases[key]?.apply(purchase, about: settlement.claim.receiptID, policy: policy)
            }
        }
        noteOmissions()
        noteUnchanged()
        takeDetailsAlong()
        claimByProof()
        for settlement in batch where settlement.evidence != nil && !isRepeated(settlement) {
            resolveOwnership(of: settlement)
        }
    }

    /// Moves the periods that an answer shows under another original transaction id than what is known.
    private mutating func moveLineItems(of settlement: Settlement, _ evidence: Evidence, policy: Policy) {
        let appID = settlement.claim.app.id
        for move in evidence.moves(among: known(of: settlement, evidence)) {
            let from = SubscriptionRowKey(appID: appID, environment: evidence.environment, id: move.from)
            let to = SubscriptionRowKey(appID: appID, environment: evidence.environment, id: move.to)
            let payer = subscriptions[from]?.ownership.current
            subscriptions[to]?.gain(move, of: payer)
            let successor = owner(of: to, afterClaimsOf: settlement)
            let isElsewhere = payer.map { $0.customer != successor?.customer } ?? false
            subscriptions[from]?.lose(move, keepsAccess: isElsewhere && !move.isRefunded, policy: policy)
            moves.append((from, to, move))
        }
    }

    /// What is known of the subscriptions that an answer names, and of those that hold its line items.
    private func known(of settlement: Settlement, _ evidence: Evidence) -> [SubscriptionFacts] {
        let held =
            holders.isEmpty
            ? []
            : subscriptions.filter { holders.contains($0.value.rowID) }.map(\.key)
                .filter { $0.appID == settlement.claim.app.id && $0.environment == evidence.environment }
        return Set(settlement.subscriptionKeys + held).sorted().compactMap { subscriptions[$0]?.state?.facts }
    }

    /// Returns who will own a subscription once the claims of the answer's receipt are resolved.
    private func owner(of key: SubscriptionRowKey, afterClaimsOf settlement: Settlement) -> Owner? {
        guard var draft = subscriptions[key] else { return nil }
        let token = draft.state?.facts.appAccountToken
        draft.resolveOwnership(
            among: claims(of: settlement), of: settlement.claim.receiptID, ownedBy: nil,
            named: orderCustomers.named(by: token, appID: key.appID), policy: settlement.claim.app.ownershipPolicy)
        return draft.ownership.current
    }

    /// Notes which subscriptions and purchases a verified answer omits although they are polled through its receipt: it
    /// says nothing about them. Statuses name all subscriptions of a customer.
    private mutating func noteOmissions() {
        let settled = batch.filter { $0.listsSubscriptions && !isRepeated($0) }
        let read = Dictionary(settled.map { ($0.claim.receiptID, $0) }) { _, last in last }
        let held = read.filter(\.value.speaksForAll)
        for (key, draft) in subscriptions {
            guard let answer = draft.polling.poller.flatMap({ read[$0] }), !answer.subscriptionKeys.contains(key)
            else { continue }
            subscriptions[key]?.polling.omit()
            if let span = allowanceEnded(of: draft, leftOutOf: answer) {
                let policy = answer.claim.app.policy(for: key.environment)
                subscriptions[key]?.endAllowance(of: span, policy: policy)
                endedByAbsence.append(key)
            }
        }
        for (key, draft) in purchases {
            guard let answer = draft.polling.poller.flatMap({ held[$0] }) else { continue }
            if !answer.purchases.contains(where: { $0.key == key }) { purchases[key]?.polling.omit() }
        }
    }

    /// Returns the span whose outage allowance ends because an answer that was given since leaves the subscription out. The
    /// allowance is for silence: it ends where the answer shows a successor in the group, and else when enough answers
    /// left it out.
    private func allowanceEnded(of draft: SubscriptionDraft, leftOutOf answer: Settlement) -> StoredSpan? {
        guard !draft.wasChecked, let state = draft.state, let evidence = answer.evidence,
            !evidence.transactions.isEmpty,
            let span = draft.storedSpans.first(where: { $0.isInOutageAllowance(at: recordedAt) }),
            span.from <= evidence.asOf
        else { return nil }
        let speedup = answer.claim.app.policy(for: evidence.environment).speedup
        let isOver = evidence.showsSuccessor(of: state) || draft.polling.isAbsent(at: recordedAt, speedup: speedup)
        return isOver ? span : nil
    }

    /// Notes which purchases a history leaves out because nothing of them changed since the last read: they were checked,
    /// and are as they were at the instant of the answer.
    private mutating func noteUnchanged() {
        let settled = batch.filter { $0.evidence?.confirmsOtherPurchases == true && !isRepeated($0) }
        let read = Dictionary(settled.map { ($0.claim.receiptID, $0) }) { _, last in last }
        for (key, draft) in purchases {
            guard let answer = draft.polling.poller.flatMap({ read[$0] }) else { continue }
            if !answer.purchases.contains(where: { $0.key == key }) {
                let policy = answer.claim.app.policy(for: key.environment)
                purchases[key]?.confirm(asOf: answer.asOf, policy: policy)
            }
        }
    }

    /// Resolves what already has an owner first, because that owner may get the rest of the receipt. A receipt that no
    /// customer uploaded gives its contents to the customers whom their account tokens name, else to those who sent other
    /// receipts with the same contents.
    private mutating func resolveOwnership(of settlement: Settlement) {
        let receipt = settlement.claim.receiptID
        let ownershipClaims = claims(of: settlement)
        guard !ownershipClaims.isEmpty || !orderCustomers.isEmpty else { return }
        let policy = settlement.claim.app.ownershipPolicy
        let (keys, bought) = contents(of: settlement)
        for isOwned in [true, false] {
            let owner =
                isOwned || ownershipClaims.isEmpty
                ? nil : receiptOwner(of: keys, bought, among: ownershipClaims, policy: policy)
            for key in keys where (subscriptions[key]?.ownership.buyer != nil) == isOwned {
                let token = subscriptions[key]?.state?.facts.appAccountToken
                subscriptions[key]?.resolveOwnership(
                    among: ownershipClaims, of: receipt, ownedBy: owner,
                    named: orderCustomers.named(by: token, appID: key.appID), policy: policy)
            }
            for key in bought where (purchases[key]?.ownership.buyer != nil) == isOwned {
                let token = purchases[key]?.state?.facts.appAccountToken?.value
                purchases[key]?.resolveOwnership(
                    among: ownershipClaims, of: receipt, ownedBy: owner,
                    named: orderCustomers.named(by: token, appID: key.appID), policy: policy)
            }
        }
    }

    /// Returns the owner of the receipt's contents where the policy lets the first owner keep them; of several owners,
    /// the earliest uploader.
    private func receiptOwner(
        of keys: [SubscriptionRowKey], _ bought: [PurchaseRowKey], among ownershipClaims: [OwnershipClaim],
        policy: OwnershipPolicy
    ) -> Owner? {
        switch policy {
        case .transfer: return nil
        case .keep, .transferIfLapsed: break
        }
        let owners =
            keys.sorted().compactMap { subscriptions[$0]?.ownership.buyer }
            + bought.sorted().compactMap { purchases[$0]?.ownership.buyer }
        let earliest = ownershipClaims.lazy.compactMap { claim in owners.first { $0.customer == claim.customer } }.first
        return earliest ?? owners.first
    }
}
