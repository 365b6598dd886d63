import JSON
import Postgres
import SQL
import Subscriptions

/// An event with its place in its stream.
struct DraftEvent: Sendable {
    let version: Int64
    let ordinal: Int16
    let asOf: Instant
    let event: Event

    static func events(_ events: [Event], of version: Int64, asOf: Instant) -> [DraftEvent] {
        events.enumerated().map { ordinal, event in
            DraftEvent(version: version, ordinal: Int16(clamping: ordinal), asOf: asOf, event: event)
        }
    }
}

/// A subscription during a settlement: its stored state and its new state.
struct SubscriptionDraft: Sendable {
    let rowID: Int64
    let key: SubscriptionRowKey
    /// The loaded state; nil at first sight.
    let stored: SubscriptionState?
    let storedSpans: [StoredSpan]
    /// When this settlement is recorded, in microseconds: later than every instant that was recorded for it before.
    let recordedMicroseconds: Int64
    var state: SubscriptionState?
    var version: Int64
    var events: [DraftEvent] = []
    var ownership = OwnershipDraft()
    var polling: PollingDraft
    /// The receipt whose answer was folded last; nil after silence and before any.
    var answeredBy: ReceiptID?
    var policy: Policy?
    /// The instant of the last verified answer, in microseconds.
    var checkedMicroseconds: Int64?

    private(set) var wasChecked = false
    /// Whether this settlement gave it the owner of a period that moved here.
    private var hasInheritedOwner = false

    /// Applies the evidence of an answer about a receipt, with what is known of its line items elsewhere.
    mutating func apply(
        _ evidence: SubscriptionEvidence, elsewhere: LineItemsElsewhere?, about receipt: ReceiptID, policy: Policy
    ) {
        fold(evidence, elsewhere: elsewhere, policy: policy)
        answeredBy = receipt
        polling.offer(receipt)
        checkedMicroseconds = recordedMicroseconds
    }

    /// Ends the outage allowance of `span`: folds in that no answer came until the span began. The clock moves only to
    /// that moment, so that a later answer that shows a renewal after all can also report its end.
    mutating func endAllowance(of span: StoredSpan, policy: Policy) {
        guard let state else { return }
        fold(.silence(of: key.id, until: span.from), policy: policy.with(leeway: state.leeway))
        answeredBy = nil
    }

    /// Folds in that a period moved to another subscription.
    mutating func lose(_ move: LineItemMove, keepsAccess: Bool, policy: Policy) {
        learn(move.evidence(keepsAccess: keepsAccess), policy: policy)
    }

    /// Folds in what an answer about another subscription shows.
    mutating func learn(_ evidence: SubscriptionEvidence, policy: Policy) {
        fold(evidence, policy: policy)
        checkedMicroseconds = recordedMicroseconds
    }

    /// Gets the owner of the subscription from which a period came here, if it has none.
    mutating func gain(_ move: LineItemMove, of owner: Owner?) {
        guard let state, let owner, ownership.current == nil else { return }
        let reason: OwnershipCause = owner.isPointer ? .pointer : .upload
        guard let change = ownership.give(to: owner.customer, named: owner.name, because: reason) else { return }
        note(change, of: state.timeline.span(at: state.asOf)?.productID ?? move.row.productID)
        hasInheritedOwner = true
    }

    /// Its periods that are new or changed, as they are written.
    var recordsToWrite: [PeriodRecord] {
        state.map { $0.facts.recordsToWrite(since: stored?.facts, policy: tolerances) } ?? []
    }

    /// The app's tolerances, or the usual ones where no answer was folded in.
    var tolerances: Policy { policy ?? .standard(for: key.environment) }

    /// Whether it gives access that it did not give before, and none of its events says so.
    var gainsAccessSilently: Bool {
        guard let state, state.timeline.span(at: state.asOf)?.entitled == true,
            stored?.timeline.span(at: state.asOf)?.entitled != true
        else { return false }
        return events.allSatisfy { [.ownershipAssigned, .ownershipTransferred].contains($0.event.kind) }
    }

    private mutating func fold(_ evidence: SubscriptionEvidence, elsewhere: LineItemsElsewhere? = nil, policy: Policy) {
        let result = reconcile(state, with: evidence, elsewhere: elsewhere, policy: policy)
        state = result.state
        self.policy = policy
        wasChecked = true
        guard result.changed else { return }
        version += 1
        events += DraftEvent.events(result.events, of: version, asOf: max(result.state.asOf, evidence.asOf))
    }

    /// Takes the details of a verified transaction along: a version without events, where they say more.
    mutating func addDetails(of row: TransactionRow) {
        guard let state, let policy, let facts = state.facts.addingDetails(of: row), facts != state.facts
        else { return }
        if !facts.sameMeaning(as: state.facts) { version += 1 }
        self.state = SubscriptionState(facts: facts, policy: policy, version: version, retractions: state.retractions)
    }

    /// Replaces the stored state with another one, as a version without events.
    mutating func replace(with corrected: SubscriptionState, policy: Policy) {
        state = corrected
        self.policy = policy
        version = corrected.version
        wasChecked = true
    }

    /// Resolves the claims of an upload; a change of owner is a version of its own.
    mutating func resolveOwnership(
        among claimants: [Claimant], of receipt: ReceiptID, ownedBy owner: Owner?,
        named: OrderCustomers.Named?, policy: OwnershipPolicy
    ) {
        guard let state else { return }
        let span = state.timeline.span(at: state.asOf)
        let changes = ownership.resolveOwnership(
            among: claimants, of: receipt, ownedBy: owner, named: named, policy: policy,
            givesAccess: span?.entitled ?? false)
        for change in changes { note(change, of: span?.productID ?? "") }
    }

    /// Adds a change of owner, a version with its event. Who takes it from an owner just inherited is its first owner.
    mutating func note(_ change: OwnershipChange, of product: ProductID) {
        guard let state else { return }
        var change = change
        if hasInheritedOwner, change.kind == .ownershipTransferred {
            events.removeAll { $0.event.kind == .ownershipAssigned }
            change = OwnershipChange(kind: .ownershipAssigned, detail: [:])
        }
        version += 1
        events += DraftEvent.events(change.events(of: product, at: state.asOf), of: version, asOf: state.asOf)
    }
}

/// A one-time purchase during a settlement.
struct PurchaseDraft: Sendable {
    let rowID: Int64
    let key: PurchaseRowKey
    /// What its product is, by the catalog; nil: unknown.
    let kind: ProductKind?
    let stored: PurchaseState?
    /// When this settlement is recorded, in microseconds: later than every instant that was recorded for it before.
    let recordedMicroseconds: Int64
    var state: PurchaseState?
    var version: Int64
    var events: [DraftEvent] = []
    var ownership = OwnershipDraft()
    var polling: PollingDraft
    private(set) var wasChecked = false

    mutating func apply(_ evidence: PurchaseEvidence, about receipt: ReceiptID, policy: Policy) {
        polling.offer(receipt)
        apply(evidence, policy: policy)
    }

    private mutating func apply(_ evidence: PurchaseEvidence, policy: Policy) {
        guard let result = reconcilePurchase(state, with: evidence, policy: policy) else { return }
        wasChecked = true
        state = result.state
        guard result.changed else { return }
        version += 1
        events += DraftEvent.events(result.events, of: version, asOf: result.state.asOf)
    }

    mutating func addDetails(of row: TransactionRow) {
        guard let state else { return }
        let facts = state.facts.addingDetails(of: row)
        guard facts != state.facts else { return }
        if !facts.sameMeaning(as: state.facts) { version += 1 }
        self.state = PurchaseState(facts: facts, version: version, refundRetractedAt: state.refundRetractedAt)
        wasChecked = true
    }

    mutating func confirm(asOf instant: Instant, policy: Policy) {
        polling.confirm()
        apply(PurchaseEvidence(key: key.purchase, asOf: instant, transactions: []), policy: policy)
    }

    /// Has it written although no answer of the batch speaks of it.
    mutating func markChanged() { wasChecked = true }

    /// Replaces the stored state with another one, as a version without events.
    mutating func correct(to rebuilt: PurchaseState) {
        version += 1
        state = PurchaseState(facts: rebuilt.facts, version: version, refundRetractedAt: rebuilt.refundRetractedAt)
        wasChecked = true
    }

    /// Resolves the claims of an upload; a change of owner is a version of its own.
    mutating func resolveOwnership(
        among claimants: [Claimant], of receipt: ReceiptID, ownedBy owner: Owner?,
        named: OrderCustomers.Named?, policy: OwnershipPolicy
    ) {
        guard let state else { return }
        let changes = ownership.resolveOwnership(
            among: claimants, of: receipt, ownedBy: owner, named: named, policy: policy,
            givesAccess: state.revokedAt == nil, staysWithCustomer: kind?.staysWithCustomer ?? false)
        for change in changes { note(change) }
    }

    /// Adds a change of owner: a version of its own, with its event.
    mutating func note(_ change: OwnershipChange) {
        guard let state else { return }
        version += 1
        events += DraftEvent.events(
            change.events(of: key.purchase.productID, at: state.asOf), of: version, asOf: state.asOf)
    }
}

extension Instant {
    /// An instant before everything Apple ever said.
    static let distantPast = Instant(milliseconds: .min)
}

struct LoadedSubscriptions {
    let drafts: [SubscriptionRowKey: SubscriptionDraft]

    /// Decodes the rows, with the speed of their apps. A caller that only reads gets neither owners nor omissions.
    init(
        _ rows: [Row], of apps: [Int32: App], recordedMicroseconds: Int64, lockingOwners: Bool = true,
        in transaction: Transaction
    ) throws {
        let ids = Parameter.int8s(try rows.map { try $0.int8("subscription_id") })
        func read<Value>(
            _ file: SQLFile, _ parameters: [Parameter], _ decode: (Row) throws -> Value
        ) throws -> [Int64: [Value]] {
            try rows.isEmpty ? [:] : grouped(transaction.query(file, parameters), decode, by: "subscription_id")
        }
        let periods = try read(Queries.readPeriods, [ids], PeriodRecord.init(row:))
        let spans = try read(Queries.readSpans, [ids], StoredSpan.init(row:))
        let owners = lockingOwners ? try read(Queries.readOwners, [ids, .int8s([])], Owner.init(row:)) : [:]
        let omissions = lockingOwners ? try read(Queries.readOmissions, [ids], PollingDraft.Omission.init(row:)) : [:]
        drafts = try rows.reduce(into: [:]) { drafts, row in
            let id = try row.int8("subscription_id")
            var draft = try SubscriptionDraft(
                row: row, periods: periods[id] ?? [], spans: spans[id] ?? [], owner: owners[id]?.first,
                speedup: apps[try row.int4("app_id")]?.speedup ?? 1, recordedMicroseconds: recordedMicroseconds)
            draft.polling.omission = omissions[id]?.first
            drafts[draft.key] = draft
        }
    }
}

extension SubscriptionDraft {
    fileprivate init(
        row: Row, periods: [PeriodRecord], spans: [StoredSpan], owner: Owner?, speedup: Int, recordedMicroseconds: Int64
    ) throws {
        let before = try row.timestamptzIfPresent("recorded_at")
        rowID = try row.int8("subscription_id")
        key = try SubscriptionRowKey(subject: row)
        storedSpans = spans
        self.recordedMicroseconds = max(recordedMicroseconds, before.map { $0 + 1 } ?? .min)
        version = try row.int8("version")
        stored = try Self.state(row, key: key, periods: periods, speedup: speedup, version: version)
        state = stored
        ownership.owner = owner
        polling = try PollingDraft(row: row)
        checkedMicroseconds = try row.timestamptzIfPresent("checked_at")
    }

    private static func state(
        _ row: Row, key: SubscriptionRowKey, periods: [PeriodRecord], speedup: Int, version: Int64
    ) throws -> SubscriptionState? {
        guard version > 0 else { return nil }
        let renewal = try row.jsonIfPresent("renewal").map { stored in
            Fact(try Renewal(stored), asOf: try row.instant("renewal_as_of"), path: try row.text("renewal_path"))
        }
        let facts = SubscriptionFacts(
            originalTransactionID: key.id, asOf: try row.instant("as_of"), records: periods, renewal: renewal)
        let leeway = Delay(milliseconds: try row.int8("leeway_ms"))
        return SubscriptionState(
            facts: facts, policy: Policy.standard(for: key.environment, speedup: speedup).with(leeway: leeway),
            version: version,
            retractions: try row.jsonIfPresent("suspected").map { try $0.elements.compactMap { try Retraction($0) } }
                ?? [])
    }
}

extension PollingDraft.Omission {
    fileprivate init(row: Row) throws {
        self.init(
            isByPoller: try row.bool("by_poller"), absences: Int(try row.int4("absences")),
            since: try row.instantIfPresent("absent_since"), isEverywhere: try row.bool("everywhere"))
    }
}

extension Owner {
    init(row: Row) throws {
        self.init(
            customer: CustomerID(number: try row.int8("customer_id")), name: try row.text("name"),
            rowID: try row.int8("ownership_id"), transfers: Int(try row.int8("transfers")),
            cause: try row.wordIfPresent("cause"))
    }
}

func grouped<Value>(_ rows: [Row], _ decode: (Row) throws -> Value, by column: String) throws -> [Int64: [Value]] {
    try rows.reduce(into: [:]) { lists, row in
        lists[try row.int8(column), default: []].append(try decode(row))
    }
}

struct LoadedPurchases {
    let drafts: [PurchaseRowKey: PurchaseDraft]

    /// Decodes the rows. A caller that only reads does not lock the owners and does not get them.
    init(_ rows: [Row], recordedMicroseconds: Int64, lockingOwners: Bool = true, in transaction: Transaction) throws {
        let ids = Parameter.int8s(try rows.map { try $0.int8("purchase_id") })
        let owners = try grouped(
            rows.isEmpty || !lockingOwners ? [] : transaction.query(Queries.readOwners, .int8s([]), ids),
            Owner.init(row:), by: "purchase_id")
        drafts = try rows.reduce(into: [:]) { drafts, row in
            let draft = try PurchaseDraft(
                row: row, owner: owners[try row.int8("purchase_id")]?.first, recordedMicroseconds: recordedMicroseconds)
            drafts[draft.key] = draft
        }
    }
}

extension PurchaseDraft {
    fileprivate init(row: Row, owner: Owner?, recordedMicroseconds: Int64) throws {
        let before = try row.timestamptzIfPresent("recorded_at")
        let purchase = PurchaseKey(
            originalTransactionID: try row.id("original_transaction_id"), productID: try row.id("product_id"))
        rowID = try row.int8("purchase_id")
        key = PurchaseRowKey(
            appID: try row.int4("app_id"), environment: try row.word("environment"), purchase: purchase)
        self.recordedMicroseconds = max(recordedMicroseconds, before.map { $0 + 1 } ?? .min)
        kind = try row.wordIfPresent("kind")
        let version = try row.int8("version")
        self.version = version
        stored = try row.jsonIfPresent("facts").map { facts in
            try PurchaseState(
                facts, of: purchase, asOf: try row.instant("as_of"), transactionIDs: try row.texts("transaction_ids"),
                version: version)
        }
        state = stored
        polling = try PollingDraft(row: row)
        ownership.owner = owner
    }
}
