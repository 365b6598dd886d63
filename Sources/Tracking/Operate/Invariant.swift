import Postgres
import SQL
package import Subscriptions

/// A property of every ledger at every moment; the raw value is its name in flags, JSON, metrics and tables.
package enum Invariant: String, Sendable, CaseIterable {
    /// A subscription that needs a check is polled by a receipt that can vouch for it and that is scheduled by then.
    case coverage
    /// The same for a one-time purchase that is checked for refunds.
    case purchaseCoverage = "purchase_coverage"
    /// A subscription is polled by one of the receipts that can vouch for it.
    case poller
    /// The next check is stored, and is no later than the schedule's rules say.
    case nextCheck = "next_check"
    /// No answer gets older than lookups promise while Apple answers.
    case age
    /// The stored columns and timeline of a subscription follow from its facts.
    case facts
    /// A timeline goes from the first period to infinity without gap or overlap.
    case timeline
    /// A subscription or purchase has one owner at a time.
    case ownership
    /// What is stored of a customer's entitlements is what their sources give.
    case entitlements
    /// What was bought is delivered, and what was taken back is taken back, turn by turn.
    case deliveries
    /// A paid order has a delivery, or there is a reason why not; and its state is what was settled.
    case orders
    /// A receipt without any usable answer from Apple is scheduled.
    case scheduled
    /// A check that is wanted by a certain time is not forgotten.
    case wanted
    /// No receipt is leased for longer than its worker's lease time.
    case leases
    /// Every event belongs to a version that its subscription or purchase has reached, and has or awaits a place in the
    /// feed; and what a subscription or purchase is, and a refund that came with a move of its period, has an event.
    case events
    /// The feed is gapless, and in the order of each subscription's changes.
    case feed
    /// A webhook is within the feed, and each of its streams waits at an event of its own.
    case webhooks
    /// The summaries match the history of each subscription.
    case summaries
    /// The sums of the summaries match the shares of the subscriptions.
    case summarySums = "summary_sums"
}

extension Invariant {
    /// Whether a repair restores it: the repair makes a new plan to ask about the subscription.
    package var isRepairable: Bool {
        switch self {
        case .coverage, .purchaseCoverage, .poller, .nextCheck, .age: true
        case .facts, .timeline, .ownership, .entitlements, .deliveries, .orders, .scheduled, .wanted, .leases, .events,
            .feed, .webhooks, .summaries, .summarySums:
            false
        }
    }

    /// The advice on a violation, in one sentence.
    package var advice: String {
        switch self {
        case .coverage, .poller, .nextCheck, .age:
            "Run `perennial verify --repair`; the subscription is then asked about by a receipt that can vouch for it."
        case .purchaseCoverage:
            "Run `perennial verify --repair`; the purchase is then asked about by a receipt that can vouch for it."
        case .facts:
            "Run `perennial rebuild --app APP`, which writes it anew from what Apple said."
        case .timeline:
            "Run `perennial rebuild --app APP`; if it stays, restore the constraint subscription_span_says_one_thing."
        case .ownership:
            "Run `perennial customer assign` to say whose it is, and restore the constraints of ledger.ownership; where a "
                + "receipt is named, run `perennial receipt check --receipt ID`, which decides anew."
        case .entitlements:
            "Run `perennial rebuild --app APP`, which stores what the sources give."
        case .deliveries:
            "Run `perennial catalog apply` with the same catalog; a worker then stores what is missing."
        case .orders:
            "Look at the order with `perennial order show` and at its customer's deliveries; give by hand what is missing."
        case .scheduled:
            "Run `perennial receipt check --receipt ID`, which asks Apple and schedules it."
        case .wanted:
            "See that a worker runs; then run `perennial receipt check --receipt ID`."
        case .leases:
            "Run `perennial receipt check --receipt ID` when the lease is over, or stop the worker that holds it."
        case .events:
            "Keep a dump of the database and report it: a settlement and its events are one transaction."
        case .feed:
            "Keep a dump of the database and report it; consumers read the subscription's state again."
        case .webhooks:
            "Run `perennial webhook replay`, which sends again from a position that you trust."
        case .summaries, .summarySums:
            "A worker's round through all subscriptions puts it right; `perennial report summaries_check` names the days."
        }
    }
}

/// An invariant that does not hold for one row of the ledger, as seen twice in snapshots a moment apart.
package struct Violation: Sendable, Hashable {
    package let invariant: Invariant
    /// The app; nil where a position of the feed belongs to none.
    package let bundleID: BundleID?
    /// The environment; nil for a receipt whose environment is not known.
    package let environment: StoreEnvironment?
    package let originalTransactionID: OriginalTransactionID?
    package let productID: ProductID?
    /// The receipt, or the receipt that polls the subscription.
    package let receiptID: ReceiptID?
    /// The problem, as a clause.
    package let detail: String
    let key: Int64

    /// The identity by which two looks recognize the same violation.
    struct Identity: Hashable {
        let invariant: Invariant
        let key: Int64
    }

    var identity: Identity { Identity(invariant: invariant, key: key) }
}

extension Violation {
    /// Reads a row of a check's own statement.
    init(_ invariant: Invariant, row: Row) throws {
        self.invariant = invariant
        bundleID = try row.idIfPresent("bundle_id")
        environment = try row.wordIfPresent("environment")
        originalTransactionID = try row.idIfPresent("original_transaction_id")
        productID = try row.idIfPresent("product_id")
        receiptID = try row.int8IfPresent("receipt_id").map { ReceiptID($0) }
        detail = try row.text("detail")
        key = try row.int8("key")
    }

    /// The violation and the advice, in one line.
    package var sentence: String {
        let purchase = productID.map { "\($0) of " } ?? ""
        let thing = originalTransactionID.map { "\(purchase)\($0)" } ?? receiptID.map { "receipt \($0)" }
        let place = [bundleID?.text, environment?.rawValue, thing].compactMap(\.self).joined(separator: " ")
        return "\(invariant.rawValue): \(place.isEmpty ? "the feed" : place): \(detail). \(invariant.advice)"
    }
}

/// The keys after `after` up to `until`, examined in one snapshot.
struct KeySlice: Sendable, Hashable {
    let after: Int64
    let until: Int64

    var parameters: [Parameter] { [.int8(after), .int8(until)] }
}

/// A way to examine the ledger slice by slice, and the invariants it covers.
struct Examination: Sendable {
    let invariants: Set<Invariant>
    /// Returns the end of the next slice.
    let next: SQLFile
    /// The most keys in one slice.
    let keysMax: Int32
    /// The longest time for one statement of a look, in milliseconds; a slice that takes longer is made smaller.
    var lookMillisecondsMax: Int32 = 5_000
    let look: @Sendable (KeySlice, VerifyTerms, [Int32: App], Transaction) throws -> [Violation]

    /// Every examination, the most important first.
    static let all: [Examination] = [
        statement(.coverage, Queries.verifyCoverage, over: Queries.verifyNextSubscriptions) {
            [.float8($0.toleranceSeconds), .bool(false)]
        },
        statement(.purchaseCoverage, Queries.verifyCoverage, over: Queries.verifyNextPurchases) {
            [.float8($0.toleranceSeconds), .bool(true)]
        },
        Examination(
            invariants: [.poller, .nextCheck, .age, .facts], next: Queries.verifyNextSubscriptions, keysMax: 200,
            look: subscriptionViolations),
        statement(.timeline, Queries.verifyTimeline, over: Queries.verifyNextSubscriptions),
        statement(.scheduled, Queries.verifyScheduled, over: Queries.verifyNextReceipts),
        statement(.wanted, Queries.verifyWanted, over: Queries.verifyNextReceipts) { [.float8($0.leaseSeconds)] },
        statement(.leases, Queries.verifyLeases, over: Queries.verifyNextReceipts),
        statement(.ownership, Queries.verifyOwnership, over: Queries.verifyNextOwnerships),
        statement(.entitlements, Queries.verifyEntitlements, over: Queries.verifyNextCustomers, keysMax: 500),
        statement(.deliveries, Queries.verifyPurchaseDeliveries, over: Queries.verifyNextPurchases),
        statement(
            .deliveries, Queries.verifySubscriptionDeliveries, over: Queries.verifyNextSubscriptions, keysMax: 500),
        statement(.orders, Queries.verifyOrders, over: Queries.verifyNextPurchases) { _ in [.bool(true)] },
        statement(.orders, Queries.verifyOrders, over: Queries.verifyNextSubscriptions, keysMax: 500) { _ in
            [.bool(false)]
        },
        statement(.events, Queries.verifyEvents, over: Queries.verifyNextEvents),
        statement(.events, Queries.verifyMovedRefunds, over: Queries.verifyNextSubscriptions),
        statement(.events, Queries.verifyMissingEvents, over: Queries.verifyNextSubscriptions, keysMax: 500),
        statement(.events, Queries.verifyMissingPurchaseEvents, over: Queries.verifyNextPurchases),
        statement(.feed, Queries.verifyFeed, over: Queries.verifyNextPositions),
        statement(.webhooks, Queries.verifyWebhooks, over: Queries.verifyNextWebhooks),
        statement(.summaries, Queries.verifySummaries, over: Queries.verifyNextSubscriptions, keysMax: 500),
        // An app's sums cannot be examined in parts: ten million shares take some ten seconds.
        statement(
            .summarySums, Queries.verifySums, over: Queries.verifyNextApps, keysMax: 1, lookMillisecondsMax: 120_000),
    ]

    /// Makes an examination of one invariant, by a statement that returns its violations.
    private static func statement(
        _ invariant: Invariant, _ file: SQLFile, over next: SQLFile, keysMax: Int32 = 2_000,
        lookMillisecondsMax: Int32 = 5_000, _ more: @escaping @Sendable (VerifyTerms) -> [Parameter] = { _ in [] }
    ) -> Examination {
        Examination(
            invariants: [invariant], next: next, keysMax: keysMax, lookMillisecondsMax: lookMillisecondsMax
        ) { slice, terms, _, transaction in
            try transaction.query(file, slice.parameters + more(terms)).map { try Violation(invariant, row: $0) }
        }
    }
}

/// Returns where a slice of subscriptions violates what follows from their facts and from the schedule's rules.
@Sendable func subscriptionViolations(
    in slice: KeySlice, _ terms: VerifyTerms, apps: [Int32: App], transaction: Transaction
) throws -> [Violation] {
    let rows = try transaction.query(Queries.verifySubscriptions, slice.parameters)
    let apps = apps.mapValues { $0.accelerated(by: terms.speedup) }
    let loaded = try LoadedSubscriptions(rows, of: apps, recordedMicroseconds: 0, lockingOwners: false, in: transaction)
    let drafts = Dictionary(loaded.drafts.values.map { ($0.rowID, $0) }) { first, _ in first }
    return try rows.flatMap { row -> [Violation] in
        guard let draft = drafts[try row.int8("subscription_id")], let state = draft.stored,
            let app = apps[draft.key.appID]
        else { return [] }
        let stored = try StoredSubscription(draft, state, app: app, row, terms)
        let found: [(Invariant, String?)] = [
            (.poller, try stored.pollerTrouble(row)), (.nextCheck, stored.nextCheckTrouble),
            (.age, try stored.ageTrouble(row)), (.facts, try stored.factsTrouble(row)),
        ]
        return found.compactMap { invariant, detail in
            detail.map { detail in
                Violation(
                    invariant: invariant, bundleID: app.bundleID, environment: draft.key.environment,
                    originalTransactionID: draft.key.id, productID: nil, receiptID: draft.polling.storedPoller,
                    detail: detail, key: draft.rowID)
            }
        }
    }
}

/// A stored subscription and the rules that it must follow.
private struct StoredSubscription {
    private let draft: SubscriptionDraft
    private let state: SubscriptionState
    /// The app's tolerances; those that delay a plan are the most patient ones, because the app's may have changed since.
    private let policy: Policy
    private let now: Instant
    private let checkedAt: Instant
    private let terms: VerifyTerms

    /// The most by which a plan may differ because another receipt polled when it was made: a check's longest spread.
    private static let spreadLongest = Delay.minutes(75)

    init(_ draft: SubscriptionDraft, _ state: SubscriptionState, app: App, _ row: Row, _ terms: VerifyTerms) throws {
        self.draft = draft
        self.state = state
        self.terms = terms
        now = try row.instant("now")
        checkedAt = draft.checkedMicroseconds.map { Instant(microseconds: $0) } ?? state.asOf
        var policy = app.policy(for: draft.key.environment)
        // The setting may have been another one when the check was planned.
        policy.sweepStretch = SweepFrequency.relaxed.stretch
        policy.preCheckSpread = .zero
        self.policy = policy
    }

    /// Returns the next check by the rules, as of an instant; nil for never.
    private func planned(at instant: Instant) -> Instant? {
        let plan = nextCheck(
            for: [state], environment: draft.key.environment, outcome: .verified, now: instant,
            seed: UInt64(bitPattern: draft.polling.storedPoller?.number ?? 0), policy: policy)
        return switch plan {
        case .at(let next): next
        case .retired: nil
        }
    }

    /// Returns a problem when no receipt polls it although one could.
    func pollerTrouble(_ row: Row) throws -> String? {
        guard draft.polling.storedPoller == nil, let candidate = try row.int8IfPresent("candidate") else { return nil }
        let next = planned(at: now).map { "a check is due by \($0.iso8601)" } ?? "no check is due"
        return "nothing polls it, receipt \(candidate) could, and \(next)"
    }

    /// The problem that the stored plan is later than the rules give both at the last answer and now.
    var nextCheckTrouble: String? {
        guard draft.polling.storedPoller != nil, let before = planned(at: checkedAt), let today = planned(at: now)
        else { return nil }
        let latest = max(before, today)
        guard let stored = draft.polling.nextCheckAt else {
            return "no check is planned, and one is due by \(latest.iso8601)"
        }
        let tolerance = max(Self.spreadLongest.milliseconds / Int64(terms.speedup), 1_000)
        guard stored > latest + Delay(milliseconds: tolerance) else { return nil }
        return "the next check is planned for \(stored.iso8601), the rules give \(latest.iso8601)"
    }

    /// Returns a problem when the answer is older than lookups promise and its poller waits although Apple answers.
    func ageTrouble(_ row: Row) throws -> String? {
        guard try row.bool("sleeps"), let input,
            let limit = ageLimit(of: input, environment: draft.key.environment, policy: policy)
        else { return nil }
        let patience = Delay(milliseconds: Int64((terms.leaseSeconds + terms.toleranceSeconds) * 1_000))
        let end = checkedAt + limit + patience
        guard end < now else { return nil }
        return "the newest answer is of \(checkedAt.iso8601), and another one was promised by \(end.iso8601)"
    }

    private var input: FreshnessInput? {
        guard let span = state.timeline.span(at: max(now, state.asOf)) else { return nil }
        let isInOutageAllowance = state.outageAllowance.applies(at: now, asOf: state.asOf, policy: policy)
        return FreshnessInput(
            state: isInOutageAllowance ? .awaitingRenewal : span.state,
            reason: isInOutageAllowance ? .renewal : span.reason,
            answeredAt: checkedAt, expiresAt: state.expiresAt, accessEndsAt: span.entitledUntil, since: span.from,
            chargedAt: state.headStartsAt, isRenewalOff: state.nextPayment == false)
    }

    /// Returns how columns and timeline differ from the facts, but for the allowance's length, which may be newer.
    func factsTrouble(_ row: Row) throws -> String? {
        let held = draft.storedSpans.lazy.compactMap { span in span.allowedUntil.map { $0 - span.from } }.first
        let differences = try FactComparison(
            state, draft.storedSpans, columns: row, with: state, outageAllowance: held ?? policy.outageAllowance
        ).differences(of: "")
        guard let first = differences.first else { return nil }
        let more = differences.count == 1 ? "" : ", and \(differences.count - 1) more differ"
        return "\(first.fact) is \(first.stored ?? "nothing"), its facts give \(first.rebuilt ?? "nothing")\(more)"
    }
}
