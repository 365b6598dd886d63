/// The contents of one verified answer, with Apple's clock and the path of every row.
package struct Evidence: Sendable {
    /// The environment of the purchases.
    package var environment: StoreEnvironment
    /// The app the answer names, if it names one.
    package var bundleID: BundleID?
    /// Apple's clock at the answer: `request_date`, or the database's clock if Apple's was too far ahead of it.
    package var asOf: Instant
    /// When a legacy answer arrived, which has no clock: it speaks for an instant from `asOf` to this one. Else nil.
    package var arrivedAt: Instant?
    /// `receipt_creation_date`.
    package var receiptCreatedAt: Instant?
    /// How far Apple's clock was ahead of the database's, if it was too far: `asOf` is then the database's clock.
    package var clockAhead: Delay?
    /// Whether one-time purchases that it does not name are as they were: a history was read on to its end.
    package var confirmsOtherPurchases: Bool
    /// Whether everything that Apple itself stated was read. An unread part may be a renewal that the rest lacks.
    package var isComplete: Bool
    /// The rows of both lists, in the answer's order. Each assignment makes the index of all rows anew: assign once.
    package var transactions: [TransactionRow] { didSet { index = EvidenceIndex(transactions, renewals) } }
    /// The rows of `pending_renewal_info`, in the answer's order.
    package var renewals: [RenewalRow] { didSet { index = EvidenceIndex(transactions, renewals) } }
    private var index: EvidenceIndex

    /// Creates evidence from its parts.
    package init(
        environment: StoreEnvironment, bundleID: BundleID? = nil, asOf: Instant, receiptCreatedAt: Instant? = nil,
        clockAhead: Delay? = nil, transactions: [TransactionRow] = [], renewals: [RenewalRow] = [],
        isComplete: Bool = true, confirmsOtherPurchases: Bool = false
    ) {
        self.confirmsOtherPurchases = confirmsOtherPurchases
        self.environment = environment
        self.bundleID = bundleID
        self.asOf = asOf
        self.receiptCreatedAt = receiptCreatedAt
        self.clockAhead = clockAhead
        self.isComplete = isComplete
        self.transactions = transactions
        self.renewals = renewals
        index = EvidenceIndex(transactions, renewals)
    }

    /// An oddity of the answer although Apple vouches for the receipt, in one sentence; nil if there is none.
    package var remark: String? {
        clockAhead.map {
            "Apple's clock was \($0.inMinutes) ahead of the database's, so the answer counts from the database's clock."
        }
    }

    /// The subscriptions with rows in the answer, sorted. A row without an expiry is no subscription.
    package var subscriptions: [OriginalTransactionID] { index.periods.keys.sorted() }

    /// Returns the part of the answer about one subscription. One that was not understood in full does not show that no
    /// renewal came: it is dated just before the last end it shows, as if Apple had not been asked since.
    package func slice(of subscription: OriginalTransactionID) -> SubscriptionEvidence {
        let rows = index.periods[subscription] ?? []
        let lastEnd = rows.lazy.compactMap(\.expiresAt).max()
        let beforeEnd = lastEnd.map { $0 - Delay(milliseconds: 1) } ?? asOf
        return SubscriptionEvidence(
            originalTransactionID: subscription, asOf: isComplete ? asOf : min(asOf, beforeEnd), transactions: rows,
            renewals: index.renewals[subscription] ?? [], replacedBy: index.replacement(of: subscription))
    }

    /// Returns whether the answer shows another subscription of the group in the place of this one: charged when its last
    /// period began or since, and not taken back.
    package func showsSuccessor(of subscription: SubscriptionState) -> Bool {
        guard let group = subscription.facts.groupID else { return false }
        let last = subscription.facts.periods.last { $0.expiresAt == subscription.expiresAt }
        return index.rows(of: group, startingAt: subscription.headStartsAt).contains { row in
            row.originalTransactionID != subscription.facts.originalTransactionID
                && (row.cancelledAt == nil || row.isUpgraded)
                && (row.ownership.map { !$0.isPayer } ?? false) == (last?.isShared ?? false)
        }
    }

    /// The part of the answer about one-time purchases, sorted by original transaction and product.
    package var purchases: [PurchaseEvidence] {
        index.purchases.sorted { $0.key < $1.key }.map {
            PurchaseEvidence(key: $0.key, asOf: asOf, transactions: $0.value)
        }
    }
}

/// The conclusion from an answer of Apple's. Only `verified` changes facts.
package enum Finding: Sendable {
    /// Apple vouches for the receipt and gives this evidence.
    case verified(Evidence)
    /// Apple, or the app's own rule, does not vouch for the receipt. By itself this ends no customer's access.
    case rejected(Refusal)
    /// No usable answer: an outage says nothing about the receipt.
    case indeterminate(CheckFailure)
}

/// The reason a receipt was not vouched for.
package struct Refusal: Sendable, Hashable {
    /// The kind of refusal; the schedule and the circuit breakers depend on it.
    package enum Kind: Hashable, Sendable, CaseIterable {
        /// The answer is genuine but belongs to another app.
        case otherBundle
        /// 21003: the receipt could not be authenticated.
        case notAuthentic
        /// 21004: the shared secret is not this app's; says nothing about the receipt.
        case wrongSecret
        /// 21010: the user account is gone.
        case accountGone
        /// 21007 or 21008 as the final answer.
        case wrongEnvironment
        /// 21000: Apple could not read the request.
        case badRequest
        /// The Server API knows no such transaction (4040010, 4040005), or not its customer any more (4040001).
        case unknownTransaction
    }

    /// One sentence for people.
    package var reason: String
    /// Apple's status, if it gave one.
    package var status: Int?
    /// Whether asking again may help.
    package var retryable: Bool
    /// The kind of refusal.
    package var kind: Kind

    /// Creates a refusal from its parts.
    package init(reason: String, status: Int?, retryable: Bool, kind: Kind) {
        self.reason = reason
        self.status = status
        self.retryable = retryable
        self.kind = kind
    }
}

/// The reason there is no usable answer.
package struct CheckFailure: Sendable, Hashable {
    /// The kind of failure.
    package enum Kind: Hashable, Sendable, CaseIterable {
        /// Apple said nothing, or nothing about the receipt.
        case noUsableAnswer
        /// Apple's clock, or the database's, is so wrong that the answer applies to no known instant.
        case clockAhead
        /// Apple does not accept the app's key, or does not know the app: the whole app waits.
        case appRefused
        /// Apple was not asked, because it refuses the app's shared secret in that environment.
        case heldBack
    }

    /// One sentence for people.
    package var reason: String
    /// Apple's status, if it gave one.
    package var status: Int?
    /// Whether asking again may help.
    package var retryable: Bool

    /// The kind of failure.
    package var kind: Kind

    /// Creates a failure from its parts.
    package init(reason: String, status: Int?, retryable: Bool, kind: Kind = .noUsableAnswer) {
        self.reason = reason
        self.status = status
        self.retryable = retryable
        self.kind = kind
    }

    /// Returns a failure: Apple's clock is too far ahead of the database's for the answer to be credible.
    package static func clockAhead(by ahead: Delay, status: Int?) -> CheckFailure {
        CheckFailure(
            reason: "Apple's clock is \(ahead.inMinutes) ahead of the database's, so the answer is not believed; "
                + "check the clock of the database's machine.",
            status: status, retryable: true, kind: .clockAhead)
    }
}

/// The part of one answer about one subscription.
package struct SubscriptionEvidence: Sendable, Hashable {
    /// The subscription.
    package var originalTransactionID: OriginalTransactionID
    /// Apple's clock at the answer.
    package var asOf: Instant
    /// Its rows with an expiry, from both lists.
    package var transactions: [TransactionRow]
    /// Its rows of `pending_renewal_info`.
    package var renewals: [RenewalRow] = []
    /// The subscription of the same group whose row replaces an upgraded row of this one, if the answer shows one.
    package var replacedBy: OriginalTransactionID?
    /// What was known of its periods under another id before they moved here, to be folded again.
    var elsewhere: [Period] = []

    /// Returns evidence of no news until the end of an outage allowance, so that the end of access is reported once.
    package static func silence(
        of subscription: OriginalTransactionID, until instant: Instant
    ) -> SubscriptionEvidence {
        SubscriptionEvidence(originalTransactionID: subscription, asOf: instant, transactions: [])
    }
}

/// The rows of an answer, indexed for each use, so that slicing an answer does not take quadratic time in its rows.
struct EvidenceIndex: Sendable {
    /// The rows of periods, by subscription.
    private(set) var periods: [OriginalTransactionID: [TransactionRow]] = [:]
    /// The rows of one-time purchases.
    private(set) var purchases: [PurchaseKey: [TransactionRow]] = [:]
    /// The renewal rows, by subscription, in the answer's order.
    let renewals: [OriginalTransactionID: [RenewalRow]]
    /// The rows of periods that name their group, ordered by start.
    private let groups: [SubscriptionGroupID: [TransactionRow]]

    init(_ transactions: [TransactionRow], _ renewals: [RenewalRow]) {
        self.renewals = Dictionary(grouping: renewals, by: \.originalTransactionID)
        var groups: [SubscriptionGroupID: [TransactionRow]] = [:]
        for row in transactions where row.expiresAt != nil {
            periods[row.originalTransactionID, default: []].append(row)
            if let group = row.groupID { groups[group, default: []].append(row) }
        }
        self.groups = groups.mapValues { rows in
            rows.sorted {
                ($0.purchasedAt, $0.originalTransactionID) < ($1.purchasedAt, $1.originalTransactionID)
            }
        }
        file(transactions.filter { $0.expiresAt == nil })
    }

    /// Files rows without an expiry. Such a row is a one-time purchase, unless the answer shows elsewhere that it is a
    /// period. Then it takes the expiry of the row it repeats, and is ignored if it repeats none.
    private mutating func file(_ rows: [TransactionRow]) {
        let hasDoubtful = rows.contains { periods[$0.originalTransactionID] != nil }
        let twins = RowTwins(hasDoubtful ? periods : [:])
        for row in rows {
            if let expiresAt = twins.expiry(of: row) {
                var complete = row
                complete.expiresAt = expiresAt
                periods[row.originalTransactionID]?.append(complete)
            } else if !twins.isPeriod(row) {
                let key = PurchaseKey(originalTransactionID: row.originalTransactionID, productID: row.productID)
                purchases[key, default: []].append(row)
            }
        }
    }

    /// Returns the rows of a group that start at an instant or later.
    func rows(of group: SubscriptionGroupID, startingAt instant: Instant) -> ArraySlice<TransactionRow> {
        let rows = groups[group] ?? []
        return rows[rows.endOfPrefix(where: { $0.purchasedAt < instant })...]
    }

    /// Returns the other subscription of the group that took over from the last upgraded row, by the first row that
    /// replaces it: see `replaces`. A row that was itself taken back since still counts as the replacement.
    func replacement(of subscription: OriginalTransactionID) -> OriginalTransactionID? {
        let upgraded = (periods[subscription] ?? []).filter(\.isUpgraded)
        guard let replaced = upgraded.max(by: { $0.purchasedAt < $1.purchasedAt }), let group = replaced.groupID else {
            return nil
        }
        return rows(of: group, startingAt: replaced.replaceableFrom)
            .first { $0.originalTransactionID != subscription && $0.replaces(replaced) }?.originalTransactionID
    }
}

extension TransactionRow {
    /// How much earlier than the cancellation of the replaced row its replacement may start: Apple rounds one of them.
    private static let cancellationTolerance = Delay.minutes(1)

    /// The earliest start of a replacement of this upgraded row: its cancellation, or its start if Apple gives none.
    fileprivate var replaceableFrom: Instant { cancelledAt.map { $0 - Self.cancellationTolerance } ?? purchasedAt }

    /// Returns whether this row replaced an upgraded one: it began, not before that row was replaced, and before that
    /// row would have ended.
    ///
    /// An upgraded row without a cancellation date (the sandbox sends such rows) does not say when it was replaced.
    /// Then only another product with the same payer replaces it; anything else exists beside it.
    fileprivate func replaces(_ upgraded: TransactionRow) -> Bool {
        let end = expiresAt ?? purchasedAt
        let hasBegun = min(cancelledAt ?? end, end) >= purchasedAt
        guard hasBegun, let upgradedEnd = upgraded.expiresAt, purchasedAt < upgradedEnd,
            purchasedAt >= upgraded.replaceableFrom
        else { return false }
        return upgraded.cancelledAt != nil
            || productID != upgraded.productID
                && (self.ownership?.isPayer ?? true) == (upgraded.ownership?.isPayer ?? true)
    }
}

/// Finds, for a row without an expiry, the row of the same answer that describes the same period with an expiry.
struct RowTwins {
    /// A mark that identifies a period within its subscription.
    private enum Mark: Hashable {
        case lineItem(WebOrderLineItemID)
        case transaction(TransactionID)
        case start(ProductID, Instant)
        case product(ProductID)
    }

    private struct Key: Hashable {
        let subscription: OriginalTransactionID
        let mark: Mark
    }

    private var expiries: [Key: Instant] = [:]

    init(_ periods: [OriginalTransactionID: [TransactionRow]]) {
        for row in periods.values.joined() {
            guard let expiresAt = row.expiresAt else { continue }
            for key in Self.keys(of: row) { expiries[key] = max(expiries[key] ?? expiresAt, expiresAt) }
            expiries[Self.product(of: row)] = expiresAt
        }
    }

    /// Returns the expiry of the row that this row repeats; nil if it repeats none.
    func expiry(of row: TransactionRow) -> Instant? {
        Self.keys(of: row).lazy.compactMap { expiries[$0] }.first
    }

    /// Returns whether its product is sold as this subscription: then it is a period, even if no row gives its expiry.
    func isPeriod(_ row: TransactionRow) -> Bool { expiries[Self.product(of: row)] != nil }

    /// Returns the keys of a row, the most reliable mark first.
    private static func keys(of row: TransactionRow) -> [Key] {
        let marks: [Mark?] = [
            row.webOrderLineItemID.map { .lineItem($0) }, .transaction(row.transactionID),
            .start(row.productID, row.purchasedAt),
        ]
        return marks.compactMap { $0 }.map { Key(subscription: row.originalTransactionID, mark: $0) }
    }

    private static func product(of row: TransactionRow) -> Key {
        Key(subscription: row.originalTransactionID, mark: .product(row.productID))
    }
}
