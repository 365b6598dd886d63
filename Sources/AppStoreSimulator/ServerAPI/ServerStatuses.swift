/// Get All Subscription Statuses, and Get Transaction Info.
extension Simulator {
    func statuses(_ call: ServerCall, _ pen: SigningPen) throws -> SimulatorReply {
        let wanted = try call.values("status").map { text in
            guard let status = AppleStatus(text) else { throw ServerError.invalidStatus }
            return status
        }
        let account = try account(named: call.arguments[0], call)
        let groups = Dictionary(grouping: account.begun) { $0.periods.last?.product.groupID ?? "" }
        return try .server { json in
            json.app(pen.bundleID, at: call.environment)
            try json.array("data") { json in
                for (group, lives) in groups.sorted(by: { $0.key < $1.key }) {
                    let shown = lives.filter { wanted.isEmpty || wanted.contains($0.status(at: account.now)) }
                    guard !shown.isEmpty else { continue }
                    try json.object { json in
                        json.text("subscriptionGroupIdentifier", group)
                        try json.array("lastTransactions") { json in
                            for life in shown { try write(life, of: account, to: &json, pen) }
                        }
                    }
                }
            }
        }
    }

    private func write(_ life: Life, of account: Account, to json: inout JSONWriter, _ pen: SigningPen) throws {
        guard let head = life.periods.last, let renewal = SignedRenewal(life, of: account, in: world) else { return }
        let transaction = SignedTransaction(head, of: life, account, in: world)
        let signedAt = clock.now
        try json.object { json in
            json.text("originalTransactionId", life.ids.originalTransactionID)
            json.number("status", Int64(life.status(at: account.now).rawValue))
            json.text("signedTransactionInfo", try pen.transaction(transaction, at: signedAt))
            json.text("signedRenewalInfo", try pen.renewal(renewal, at: signedAt))
        }
    }

    func transaction(_ call: ServerCall, _ pen: SigningPen) throws -> SimulatorReply {
        let id = call.arguments[0]
        let account = try account(named: id, call)
        guard let found = SignedTransaction.one(id, of: account, in: world) else { throw ServerError.appTransaction }
        let text = try pen.transaction(found, at: clock.now)
        return .server { $0.text("signedTransactionInfo", text) }
    }
}

/// Apple's `status` of a subscription.
package enum AppleStatus: Int, Codable, Sendable, CaseIterable {
    /// A period runs, or the store is about to charge the next one.
    case active = 1
    /// The subscription is over.
    case expired = 2
    /// A charge failed, and Apple tries again.
    case billingRetry = 3
    /// A charge failed, and the grace period runs.
    case gracePeriod = 4
    /// Apple refunded the newest period, or a family share ended.
    case revoked = 5

    fileprivate init?(_ text: String) {
        guard let number = Int(text), let found = AppleStatus(rawValue: number) else { return nil }
        self = found
    }
}

extension Life {
    /// Returns whether a period that was not cancelled runs.
    func isPaid(at now: StoreTime) -> Bool {
        periods.contains { $0.cancellation == nil && $0.purchase <= now && now < $0.expires }
    }

    /// Returns Apple's status at the instant the life has reached.
    func status(at now: StoreTime) -> AppleStatus {
        if isPaid(at: now) { return .active }
        // A group can have several transactions of its newest period.
        let newest = periods.filter { $0.expires == periods.last?.expires }
        if newest.allSatisfy({ $0.cancellation.map { !$0.isUpgrade } ?? false }) { return .revoked }
        switch phase {
        case .subscribed: return .active
        case .retrying(let graceUntil, _, _): return graceUntil.map { now < $0 } ?? false ? .gracePeriod : .billingRetry
        case .ended: return .expired
        }
    }
}
