import Postgres
import SQL
package import Subscriptions

/// Everything that decides the entitlements of one customer at one instant, for `explain`.
package struct Reasons: Sendable {
    package let bundleID: BundleID
    package let customer: String
    package let isKnown: Bool
    package let at: Instant
    package let now: Instant
    /// What gives, or gave, entitlements at that instant, the winner of each entitlement first.
    package let sources: [Source]
    /// The customer's subscriptions, and those in the customer's receipts that another customer owns.
    package let subscriptions: [SubscriptionReasons]
    /// The same for one-time purchases.
    package let purchases: [PurchaseReasons]
    /// The customer's receipts, oldest first.
    package let receipts: [ReceiptStanding]

    /// One source of an entitlement, present or past.
    package struct Source: Sendable {
        package let entitlement: String
        /// Whether it grants the entitlement at the instant asked about.
        package let granted: Bool
        /// When the grant ends unless something changes.
        package let until: Instant?
        /// The product that grants or granted it; nil for a manual grant.
        package let productID: ProductID?
        package let environment: StoreEnvironment
        /// When the last verified answer about it came; nil while it is provisional and for a manual grant.
        package let checkedAt: Instant?
        /// The subscription behind it; nil for a one-time purchase and while provisional.
        package let subscription: SubscriptionReasons.ID?
        /// The purchase behind it; nil for a subscription and while provisional.
        package let purchase: PurchaseReasons.ID?
        /// The manual grant; nil when it is none.
        package let manualGrant: ManualGrant?

        /// Whether it rests only on the operator's word with an upload, until Apple is asked.
        package var isProvisional: Bool { subscription == nil && purchase == nil && manualGrant == nil }

        init(row: Row) throws {
            entitlement = try row.text("entitlement")
            granted = try row.bool("granted")
            until = try row.instantIfPresent("until")
            productID = try row.idIfPresent("product_id")
            environment = try row.word("environment")
            checkedAt = try row.instantIfPresent("checked_at")
            subscription = try row.int8IfPresent("subscription_id").map(SubscriptionReasons.ID.init(rowID:))
            purchase = try row.int8IfPresent("purchase_id").map(PurchaseReasons.ID.init(rowID:))
            manualGrant = try row.textIfPresent("given_by").map { _ in try ManualGrant(row: row) }
        }
    }

    /// The owner of a subscription or purchase, since when, and how they came to own it.
    package struct Ownership: Sendable {
        package let owner: String?
        package let isCustomer: Bool
        package let since: Instant?
        package let cause: OwnershipCause?
        /// Whether another customer owned it before, by more than a pointer.
        package let wasTransferred: Bool
        /// Whether another customer only pointed at it before.
        package let wasPointedAt: Bool
        /// Whether the owner uploaded a receipt that holds it.
        package let hasSent: Bool

        init(row: Row) throws {
            owner = try row.textIfPresent("owner")
            isCustomer = try row.bool("is_owner")
            since = try row.instantIfPresent("owned_since")
            cause = try row.wordIfPresent("owned_because")
            let last = try row.textIfPresent("owned_by")
            (wasTransferred, wasPointedAt) = (last == EventKind.ownershipTransferred.rawValue, last == "from_pointer")
            hasSent = try row.bool("owner_sent")
        }
    }

    /// The state of a receipt at Apple.
    package struct ReceiptStanding: Sendable {
        package let id: ReceiptID
        package let receivedAt: Instant
        package let askedAt: Instant?
        package let verifiedAt: Instant?
        /// How the last answer counts.
        package let outcome: String?
        /// Why the last answer was not verified.
        package let reason: String?
        package let rejections: Int
        /// When the first of them came.
        package let rejectedSince: Instant?
        /// When Apple will be asked again; nil when it will not be.
        package let nextCheckAt: Instant?

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
}

/// The known facts of one subscription, from the stored answers.
package struct SubscriptionReasons: Sendable {
    /// Identifies it among the customer's subscriptions.
    package struct ID: Hashable, Sendable {
        let rowID: Int64
    }

    package let id: ID
    package let environment: StoreEnvironment
    /// The state; its paths lead into the observations unless there is a gap.
    package let state: SubscriptionState
    /// The state that the stored answers give, whatever is stored as the state; nil when no answer is stored.
    package let replayed: SubscriptionState?
    package let policy: Policy
    /// The observations about it, by number.
    package let observations: [Int64: Observation]
    /// Why its stored answers do not give its state, so that the stored state is shown instead; nil when they do.
    package let gap: String?
    package let ownership: Reasons.Ownership
    /// The end of the outage allowance that is in use at the instant asked about; nil when none is.
    package let allowedUntil: Instant?
    package let checkedAt: Instant
    /// The receipt Apple is asked about for it.
    package let polledBy: ReceiptID?
    /// When Apple will be asked about it; nil when it will not be.
    package let nextCheckAt: Instant?
}

/// The known facts of one one-time purchase, from the stored answers.
package struct PurchaseReasons: Sendable {
    /// Identifies it among the customer's purchases.
    package struct ID: Hashable, Sendable {
        let rowID: Int64
    }

    package let id: ID
    package let environment: StoreEnvironment
    /// The state; its paths lead into the observations unless there is a gap.
    package let state: PurchaseState
    /// The observations about it, by number.
    package let observations: [Int64: Observation]
    /// Why its stored answers do not give its state, so that the stored state is shown instead; nil when they do.
    package let gap: String?
    package let ownership: Reasons.Ownership
}

extension LedgerCustomers {
    /// Returns everything that decides a customer's entitlements at `time`, now where nil, as it is known now.
    package func reasons(
        app bundleID: BundleID, customer: String, at time: Instant? = nil, reading read: EvidenceReader
    ) async throws -> Reasons {
        let app = try await ledger.apps.app(bundleID)
        return try await database.transaction { transaction in
            try transaction.query(Queries.holdSnapshot)
            let found = try transaction.query(
                Queries.findCustomer, .text(bundleID.text), .text(customer), .instant(time))
            guard let row = found.first else { throw LedgerError.unknownApp(bundleID) }
            let id = try row.int8IfPresent("customer_id")
            let reading = ReasonsReading(app: app, at: try row.instant("at"), read: read, transaction: transaction)
            return Reasons(
                bundleID: bundleID, customer: customer, isKnown: id != nil, at: reading.at, now: try row.instant("now"),
                sources: try id.map(reading.sources(of:)) ?? [],
                subscriptions: try id.map(reading.subscriptions(of:)) ?? [],
                purchases: try id.map(reading.purchases(of:)) ?? [],
                receipts: try id.map(reading.receipts(of:)) ?? [])
        }
    }
}

/// Reads the reasons for one customer's entitlements in one transaction.
private struct ReasonsReading {
    /// The most receipts, the most subscriptions and the most purchases of one customer that are read.
    static let thingsMax: Int32 = 200
    private static let difference = "What is stored is not what the answers say; run `perennial rebuild --verify`."

    let app: App
    let at: Instant
    let read: EvidenceReader
    let transaction: Transaction

    func sources(of customer: Int64) throws -> [Reasons.Source] {
        try transaction.query(Queries.readSources, .int8(customer), .instant(at)).map(Reasons.Source.init(row:))
    }

    func receipts(of customer: Int64) throws -> [Reasons.ReceiptStanding] {
        try transaction.query(Queries.readStandings, .int8(customer), .int4(Self.thingsMax))
            .map(Reasons.ReceiptStanding.init(row:))
    }

    func subscriptions(of customer: Int64) throws -> [SubscriptionReasons] {
        let rows = try transaction.query(Queries.readHoldings, .int8(customer), .int4(Self.thingsMax))
        let loaded = try LoadedSubscriptions(
            rows, of: [app.id: app], recordedMicroseconds: 0, lockingOwners: false, in: transaction)
        let drafts = Dictionary(loaded.drafts.values.map { ($0.rowID, $0) }) { first, _ in first }
        let replay = try Replay(of: drafts.values.map(\.replayed), purchases: [], reading: read, in: transaction)
        return try rows.compactMap { row in
            guard let draft = drafts[try row.int8("subscription_id")], let stored = draft.stored else { return nil }
            let policy = app.policy(for: draft.key.environment)
            let replayed = replay.state(of: draft.replayed, policy: policy)
            // A manual correction, or a fact from answers that are gone, is explained as it is stored.
            let isReplayed = replayed?.facts.sameMeaning(as: stored.facts) ?? false
            let gap = replay.gap(of: draft.replayed) ?? (isReplayed ? nil : Self.difference)
            return SubscriptionReasons(
                id: SubscriptionReasons.ID(rowID: draft.rowID), environment: draft.key.environment,
                state: gap == nil ? replayed ?? stored : stored, replayed: replayed, policy: policy,
                observations: replay.observations, gap: gap, ownership: try Reasons.Ownership(row: row),
                allowedUntil: draft.storedSpans.first { $0.isInOutageAllowance(at: at) }?.allowedUntil,
                checkedAt: try row.instant("checked_at"), polledBy: draft.polling.storedPoller,
                nextCheckAt: try row.instantIfPresent("due_at"))
        }
    }

    func purchases(of customer: Int64) throws -> [PurchaseReasons] {
        let rows = try transaction.query(Queries.readBought, .int8(customer), .int4(Self.thingsMax))
        let loaded = try LoadedPurchases(rows, recordedMicroseconds: 0, lockingOwners: false, in: transaction)
        let drafts = Dictionary(loaded.drafts.values.map { ($0.rowID, $0) }) { first, _ in first }
        let replay = try Replay(of: [], purchases: drafts.values.map(\.replayed), reading: read, in: transaction)
        return try rows.compactMap { row in
            guard let draft = drafts[try row.int8("purchase_id")], let stored = draft.stored else { return nil }
            let replayed = replay.state(of: draft.key, policy: app.policy(for: draft.key.environment))
            let isReplayed = replayed?.facts.sameMeaning(as: stored.facts) ?? false
            let gap = replay.gap(of: draft.replayed) ?? (isReplayed ? nil : Self.difference)
            return PurchaseReasons(
                id: PurchaseReasons.ID(rowID: draft.rowID), environment: draft.key.environment,
                state: gap == nil ? replayed ?? stored : stored, observations: replay.observations, gap: gap,
                ownership: try Reasons.Ownership(row: row))
        }
    }
}
