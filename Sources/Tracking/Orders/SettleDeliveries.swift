import Postgres
import SQL
package import Subscriptions

/// The result of acknowledging one delivery.
package struct AcknowledgedDelivery: Sendable, Hashable {
    package let id: Int64
    /// Its state afterwards; nil: the app has no such delivery.
    package let state: Delivery.State?
    package let settledAt: Instant?
    package let settledBy: String?
    /// Whether this call did it; of an id that the call names twice, the first mention.
    package fileprivate(set) var isFirst: Bool
}

extension LedgerDeliveries {
    /// The most deliveries that one call acknowledges.
    package static let acknowledgedMax = 1_000

    /// Acknowledges deliveries of an app: the operator's service carried them out. Returns one result for each id, in
    /// the same order. Repetition changes nothing. A skipped delivery stays skipped.
    ///
    /// What happened since a turn appeared, such as a refund, brings the next turn now. The audit has users here, not keys:
    /// a delivery names its key. Throws `unknownApp` for an unknown app, `invalid` for more than `acknowledgedMax`.
    package func acknowledge(_ ids: [Int64], of bundleID: BundleID) async throws -> [AcknowledgedDelivery] {
        guard ids.count <= Self.acknowledgedMax else {
            throw LedgerError(.invalid, "One call acknowledges at most \(Self.acknowledgedMax) deliveries.")
        }
        let unchanged = ledger.actor?.user == nil ? try await acknowledgeUnchanged(ids, of: bundleID) : [:]
        let others = ids.filter { unchanged[$0] == nil }
        let settled = unchanged.isEmpty || !others.isEmpty ? try await settle(others, of: bundleID) : [:]
        var named: Set<Int64> = []
        return ids.map { id in
            var result =
                unchanged[id] ?? settled[id]
                ?? AcknowledgedDelivery(id: id, state: nil, settledAt: nil, settledBy: nil, isFirst: false)
            if !named.insert(id).inserted { result.isFirst = false }
            return result
        }
    }

    /// Acknowledges the deliveries from which nothing follows. These are most, and they only leave the queue.
    private func acknowledgeUnchanged(
        _ ids: [Int64], of bundleID: BundleID
    ) async throws -> [Int64: AcknowledgedDelivery] {
        let name = actorName
        let rows = try await ledger.retryingCollisions {
            try await write(Queries.acknowledgeUnchanged, .text(bundleID.text), .int8s(ids.sorted()), .text(name))
        }
        return try rows.reduce(into: [:]) { acknowledged, row in
            let instant = try row.instant("acknowledged_at")
            for id in try row.int8s("delivery_ids") {
                acknowledged[id] = AcknowledgedDelivery(
                    id: id, state: .acknowledged, settledAt: instant, settledBy: name, isFirst: true)
            }
        }
    }

    /// Acknowledges deliveries, and stores what follows from them.
    private func settle(_ ids: [Int64], of bundleID: BundleID) async throws -> [Int64: AcknowledgedDelivery] {
        let app = try await ledger.apps.app(bundleID)
        guard ledger.actor?.user != nil else {
            return try await ledger.retryingCollisions {
                try Self.byID(await write(Queries.settleDeliveries, parameters(ids, of: app, nil)))
            }
        }
        return try await ledger.changingPollers { transaction in
            let settled = try Self.byID(transaction.query(Queries.settleDeliveries, parameters(ids, of: app, nil)))
            let first = settled.values.filter(\.isFirst).map(\.id).sorted()
            if !first.isEmpty {
                try ledger.audit(
                    .deliveriesAcknowledged, app: app.bundleID,
                    detail: ["delivery_ids": first.map { "\($0)" }.joined(separator: " ")], in: transaction)
            }
            return settled
        }
    }

    /// Skips a due delivery: nothing is to be done for it. Throws `notFound` where the app has no such delivery, `exists`
    /// where it is acknowledged, `invalid` for a reason that is blank or too long.
    package func skip(_ id: Int64, of bundleID: BundleID, because reason: String) async throws -> AcknowledgedDelivery {
        let decision = try ManualDecision(by: actorName, because: reason)
        let app = try await ledger.apps.app(bundleID)
        return try await ledger.changingPollers { transaction in
            let rows = try transaction.query(Queries.settleDeliveries, parameters([id], of: app, reason))
            guard let result = try Self.byID(rows)[id] else {
                throw LedgerError(.notFound, "\(bundleID) has no delivery \(id).")
            }
            guard result.state == .skipped else {
                throw LedgerError(.exists, "Delivery \(id) is acknowledged, so it cannot be skipped.")
            }
            guard result.isFirst, let row = try transaction.query(Queries.readDelivery, .int8(id)).first else {
                return result
            }
            try ledger.audit(
                .deliverySkipped, app: bundleID, customer: try row.text("customer"), detail: ["delivery_id": "\(id)"],
                decided: AuditedDecision(
                    decision: decision, about: [CustomerID(number: try row.int8("customer_id"))]), in: transaction)
            return result
        }
    }

    /// What settles due deliveries: it skips them where there is a reason.
    private func parameters(_ ids: [Int64], of app: App, _ reason: String?) -> [Parameter] {
        [.int4(app.id), .int8s(ids.sorted()), .text(actorName), .text(reason)]
    }

    /// The actor as a delivery names it.
    private var actorName: String {
        switch ledger.actor {
        case .key(let number): "key \(number)"
        case .user(let name): name
        case nil: "perennial"
        }
    }

    private static func byID(_ rows: [Row]) throws -> [Int64: AcknowledgedDelivery] {
        Dictionary(try rows.map(AcknowledgedDelivery.init(row:)).map { ($0.id, $0) }) { first, _ in first }
    }
}

extension AcknowledgedDelivery {
    fileprivate init(row: Row) throws {
        id = try row.int8("delivery_id")
        state = try row.word("state")
        settledAt = try row.instantIfPresent("settled_at")
        settledBy = try row.textIfPresent("settled_by")
        isFirst = try row.bool("is_first")
    }
}

extension SettlementRun {
    /// Stores the deliveries that changed purchases and subscriptions need, after their owners. A purchase whose account
    /// token is learnt makes another one of its instant no possible duplicate any more.
    func storeTurns(in transaction: Transaction) throws {
        let instants = Set(purchases.values.filter(\.isChanged).map(\.purchasedAt))
        let bought = purchases.values.filter { instants.contains($0.purchasedAt) }.map(\.rowID)
        let subscribed = subscriptions.values.filter(\.isChanged).map(\.rowID)
        guard !bought.isEmpty || !subscribed.isEmpty else { return }
        let turns = try transaction.query(Queries.storeTurns, .int8s(bought), .int8s(subscribed))
        guard try turns.first?.int8("turns") ?? 0 > 0 else { return }
        try transaction.query(Queries.advanceOrders, .int8s(bought), .int8s(subscribed))
    }

    /// Skips what is still to be given to the former owners of purchases and subscriptions, and makes it due to the new ones
    /// under an id of its own: the operator's service may be carrying out the first one now.
    func handOverDue(in transaction: Transaction) throws {
        let bought = purchases.values.filter { $0.ownership.formerOwner != nil }
        let subscribed = subscriptions.values.filter { $0.ownership.formerOwner != nil }
        guard !bought.isEmpty || !subscribed.isEmpty else { return }
        let taken = bought.map(\.ownership) + subscribed.map(\.ownership)
        try transaction.query(
            Queries.handOverDue, .int8s(bought.map(\.rowID) + subscribed.map { _ in nil }),
            .int8s(bought.map { _ in nil } + subscribed.map(\.rowID)), .int8s(taken.map(\.newOwner?.customer.number)),
            .bools(taken.map(\.takesOrdered)))
    }

    /// Moves what was delivered of the purchases and subscriptions that `owners` give away to their new owner.
    func moveDeliveries(from owners: Set<CustomerID>, to customer: CustomerID, in transaction: Transaction) throws {
        let changed = changedOwners
        // Every writer locks the queue before the deliveries.
        try transaction.query(Queries.markDue, changed)
        try transaction.query(Queries.moveDeliveries, changed + [.int8s(owners.map(\.number)), .int8(customer.number)])
    }

    /// Moves from `owners` what is due of what a split gives back, and all that was given to one of `names`.
    func splitDeliveries(
        from owners: [CustomerID], to customer: CustomerID, of names: [Int64], in transaction: Transaction
    ) throws {
        let changed = changedOwners
        try transaction.query(Queries.markDue, changed)
        try transaction.query(
            Queries.splitDeliveries, changed + [.int8s(owners.map(\.number)), .int8(customer.number), .int8s(names)])
    }

    /// The purchases and subscriptions that change their owner.
    private var changedOwners: [Parameter] {
        [
            .int8s(purchases.values.filter(\.ownership.isChanged).map(\.rowID)),
            .int8s(subscriptions.values.filter(\.ownership.isChanged).map(\.rowID)),
        ]
    }
}

extension PurchaseDraft {
    /// Whether this settlement changes what Apple said of it, or its owner.
    var isChanged: Bool { version != stored?.version ?? 0 || ownership.isChanged }

    fileprivate var purchasedAt: Instant? { state?.facts.terms.value.purchasedAt }
}

extension SubscriptionDraft {
    /// Whether this settlement changes what Apple said of it, or its owner.
    var isChanged: Bool { version != stored?.version ?? 0 || ownership.isChanged }
}
