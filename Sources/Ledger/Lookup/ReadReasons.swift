import Postgres
import SQL
package import Subscriptions

extension LedgerCustomers {
    /// Returns everything that decides a customer's entitlements at `time`, now where nil, as it is known now.
    package func reasons(
        app bundleID: BundleID, customer: String, at time: Instant? = nil,
        reading read: EvidenceReader
    ) async throws -> Reasons {
        let app = try await ledger.apps.app(bundleID)
        return try await database.transaction { transaction in
            try transaction.query(Queries.holdSnapshot)
            let found = try transaction.query(
                Queries.findCustomer, [.text(bundleID.text), .text(customer), .instant(time)])
            guard let row = found.first else { throw LedgerError(.notFound, "The app \(bundleID) is gone.") }
            let reading = ReasonsReading(
                app: app, at: try row.instant("at"), read: read)
            let id = try row.int8IfPresent("customer_id")
            return Reasons(
                bundleID: bundleID, customer: customer, isKnown: id != nil, at: reading.at, now: try row.instant("now"),
                sources: try id.map { try reading.sources(of: $0, in: transaction) } ?? [],
                subscriptions: try id.map { try reading.subscriptions(of: $0, in: transaction) } ?? [],
                purchases: try id.map { try reading.purchases(of: $0, in: transaction) } ?? [],
                receipts: try id.map { try reading.receipts(of: $0, in: transaction) } ?? [])
        }
    }
}

/// Reads the reasons for one customer's entitlements in one transaction.
private struct ReasonsReading {
    /// The most receipts, the most subscriptions and the most purchases of one customer that are read.
    static let thingsMax: Int32 = 200

    let app: App
    let at: Instant
    let read: EvidenceReader

    func sources(of customer: Int64, in transaction: Transaction) throws -> [Reasons.Source] {
        try transaction.query(Queries.readSources, [.int8(customer), .instant(at)])
            .map(Reasons.Source.init(row:))
    }

    func receipts(of customer: Int64, in transaction: Transaction) throws -> [Reasons.ReceiptStanding] {
        try transaction.query(Queries.readStandings, [.int8(customer), .int4(Self.thingsMax)])
            .map(Reasons.ReceiptStanding.init(row:))
    }

    func subscriptions(of customer: Int64, in transaction: Transaction) throws -> [SubscriptionReasons] {
        let rows = try transaction.query(Queries.readHoldings, [.int8(customer), .int4(Self.thingsMax)])
        let loaded = try LoadedSubscriptions(
            rows, recordedMicroseconds: 0, lockingOwners: false, in: transaction)
        let drafts = Dictionary(loaded.drafts.values.map { ($0.rowID, $0) }) { first, _ in first }
        let replay = try Replay(of: drafts.values.map(\.replayed), purchases: [], reading: read, in: transaction)
        return try rows.compactMap { row in
            guard let draft = drafts[try row.int8("subscription_id")], let stored = draft.stored else { return nil }
            let policy = app.policy(for: draft.key.environment)
            let replayed = replay.state(of: draft.replayed, policy: policy)
            // A manual correction, or a fact from answers that are gone, is explained as it is stored.
            let isReplayed = replayed?.facts.sameMeaning(as: stored.facts) ?? false
            let gap =
                replay.gap(of: draft.replayed)
                ?? (isReplayed ? nil : "What is stored is not what the answers say; run `perennial rebuild --verify`.")
            return SubscriptionReasons(
                id: SubscriptionReasons.ID(rowID: draft.rowID), environment: draft.key.environment,
                state: gap == nil ? replayed ?? stored : stored, replayed: replayed, policy: policy,
                observations: replay.observations,
                gap: gap, ownership: try Reasons.Ownership(row: row),
                allowedUntil: draft.storedSpans.first { $0.isInOutageAllowance(at: at) }?.allowedUntil,
                checkedAt: try row.instant("checked_at"), polledBy: draft.polling.storedPoller,
                nextCheckAt: try row.instantIfPresent("due_at"))
        }
    }

    func purchases(of customer: Int64, in transaction: Transaction) throws -> [PurchaseReasons] {
        let rows = try transaction.query(Queries.readBought, [.int8(customer), .int4(Self.thingsMax)])
        let drafts = try LoadedPurchases(
            rows, recordedMicroseconds: 0, lockingOwners: false, in: transaction
        ).drafts
        let replay = try Replay(of: [], purchases: drafts.values.map(\.replayed), reading: read, in: transaction)
        let byID = Dictionary(drafts.values.map { ($0.rowID, $0) }) { first, _ in first }
        return try rows.compactMap { row in
            guard let draft = byID[try row.int8("purchase_id")], let stored = draft.stored else { return nil }
            let replayed = replay.state(of: draft.key, policy: app.policy(for: draft.key.environment))
            let isReplayed = replayed?.facts.sameMeaning(as: stored.facts) ?? false
            let gap =
                replay.gap(of: draft.replayed)
                ?? (isReplayed ? nil : "What is stored is not what the answers say; run `perennial rebuild --verify`.")
            return PurchaseReasons(
                id: PurchaseReasons.ID(rowID: draft.rowID), environment: draft.key.environment,
                state: gap == nil ? replayed ?? stored : stored, observations: replay.observations, gap: gap,
                ownership: try Reasons.Ownership(row: row))
        }
    }
}

extension Reasons.Source {
    fileprivate init(row: Row) throws {
        entitlement = try row.text("entitlement")
        granted = try row.bool("granted")
        until = try row.instantIfPresent("until")
        productID = try row.textIfPresent("product_id").map { ProductID($0) }
        environment = try row.word("environment")
        checkedAt = try row.instantIfPresent("checked_at")
        subscription = try row.int8IfPresent("subscription_id").map(SubscriptionReasons.ID.init(rowID:))
        purchase = try row.int8IfPresent("purchase_id").map(PurchaseReasons.ID.init(rowID:))
        manualGrant = try row.textIfPresent("given_by").map { _ in try ManualGrant(row: row) }
    }
}

extension Reasons.Ownership {
    fileprivate init(row: Row) throws {
        owner = try row.textIfPresent("owner")
        isCustomer = try row.bool("is_owner")
        since = try row.instantIfPresent("owned_since")
        wasTransferred = try row.textIfPresent("owned_by") == EventKind.ownershipTransferred.rawValue
    }
}

extension Reasons.ReceiptStanding {
    init(row: Row) throws {
        id = ReceiptID(try row.int8("receipt_id"))
        receivedAt = try row.instant("received_at")
        askedAt = try row.instantIfPresent("asked_at")
        verifiedAt = try row.instantIfPresent("verified_at")
        outcome = try row.textIfPresent("outcome")
        reason = try row.textIfPresent("reason")
        rejections = Int(try row.int2("rejections"))
        rejectedSince = try row.instantIfPresent("rejected_since")
        nextCheckAt = try row.instantIfPresent("due_at")
    }
}
