/// The facts that every row states about its period, taken from one row as a whole.
package struct Terms: Hashable, Sendable, FactValue {
    /// `product_id`.
    package var productID: ProductID
    /// `purchase_date`: the start of the period.
    package var purchasedAt: Instant
    /// `expires_date`: the end of the paid period, before any grace.
    package var expiresAt: Instant
    /// `quantity`.
    package var quantity: Int

    /// Terms from their parts.
    package init(productID: ProductID, purchasedAt: Instant, expiresAt: Instant, quantity: Int = 1) {
        self.productID = productID
        self.purchasedAt = purchasedAt
        self.expiresAt = expiresAt
        self.quantity = quantity
    }

    /// Keeps the later expiry, then the later start, the greater product, the greater quantity.
    package func yields(to other: Terms) -> Bool {
        (expiresAt, purchasedAt, productID, quantity)
            < (other.expiresAt, other.purchasedAt, other.productID, other.quantity)
    }
}

/// Whether and when a period or a purchase was taken back. A row of `latest_receipt_info` and a signed transaction state
/// it. A row of a device receipt states it only with a cancellation, because a device receipt is a frozen snapshot.
package struct Revocation: Hashable, Sendable, FactValue {
    /// `cancellation_date`.
    package var cancelledAt: Instant?
    /// `cancellation_reason`, raw.
    package var reason: String?

    /// Creates a revocation from its parts; without arguments, one that states that nothing was taken back.
    package init(cancelledAt: Instant? = nil, reason: String? = nil) {
        self.cancelledAt = cancelledAt
        self.reason = reason
    }

    /// Keeps a cancellation over none, and the later over the earlier; then the greater reason.
    package func yields(to other: Revocation) -> Bool {
        let (left, right) = (cancelledAt?.milliseconds ?? .min, other.cancelledAt?.milliseconds ?? .min)
        if left != right { return left < right }
        guard let otherReason = other.reason else { return false }
        return reason.map { $0 < otherReason } ?? true
    }
}

/// The price of the whole quantity of a transaction (Apple: "JWSTransactionDecodedPayload").
package struct Price: Hashable, Sendable, FactValue {
    /// `price`, in thousandths of the currency's unit; nil for one that cannot be read, whose place no other may take.
    package var milliunits: Int64?
    /// `currency`, such as `EUR`; empty where it cannot be read.
    package var currency: String

    /// Creates a price from its parts.
    package init(milliunits: Int64?, currency: String) {
        self.milliunits = milliunits
        self.currency = currency
    }

    /// Amount and currency in one text.
    package var words: String { "\(milliunits.map { "\($0)" } ?? "unreadable") \(currency)" }

    /// Keeps the greater price, then the greater currency.
    package func yields(to other: Price) -> Bool {
        (milliunits ?? -1, currency) < (other.milliunits ?? -1, other.currency)
    }
}

/// The optional details of a period, besides its terms. A row without a detail does not remove it.
package struct PeriodDetails: Hashable, Sendable {
    /// `original_purchase_date`.
    package var originalPurchasedAt: Fact<Instant>?
    /// `is_trial_period`.
    package var isTrial: Fact<Bool>?
    /// `is_in_intro_offer_period`.
    package var isIntro: Fact<Bool>?
    /// `promotional_offer_id`.
    package var promotionalOfferID: Fact<String>?
    /// `offer_code_ref_name`.
    package var offerCodeRefName: Fact<String>?
    /// `subscription_group_identifier`.
    package var groupID: Fact<SubscriptionGroupID>?
    /// `in_app_ownership_type`.
    package var ownership: Fact<Ownership>?
    /// `app_account_token`.
    package var appAccountToken: Fact<String>?
    /// `price` and `currency` of a signed transaction.
    package var price: Fact<Price>?
    /// `revocationPercentage` of a signed transaction, in thousandths of a percent.
    package var revocationPercentage: Fact<Int>?
    /// What a signed transaction states of its sale.
    package var sale: Fact<Sale>?
    /// The subscription of the same group that took over, if this period was replaced.
    package var replacedBy: Fact<OriginalTransactionID>?
    /// The row by which it came here from another subscription; what is older was stated there.
    package var arrival: FactOrigin?

    /// Creates empty details.
    package init() {}

    /// Creates the details that one row states.
    init(row: TransactionRow, replacedBy: OriginalTransactionID? = nil) {
        let origin = FactOrigin(asOf: row.asOf, path: row.path)
        self = row.details.replacing(.row, by: origin)
        if row.isUpgraded { self.replacedBy = replacedBy.map { Fact($0, origin: origin) } }
    }

    /// Merges both and keeps the newer of each detail.
    package func merging(_ other: PeriodDetails) -> PeriodDetails {
        var merged = updated(by: other)
        merged.arrival = [arrival, other.arrival].compactMap(\.self)
            .max { ($0.asOf, $0.path) < ($1.asOf, $1.path) }
        return merged
    }
}

extension PeriodDetails: FactGroup {
    package typealias Name = PeriodRecord.FactName

    @discardableResult
    package func each(beside other: PeriodDetails, _ step: inout some FactStep<Name>) -> PeriodDetails {
        var made = PeriodDetails()
        made.originalPurchasedAt = step.fact(.originalPurchasedAt, originalPurchasedAt, other.originalPurchasedAt)
        made.isTrial = step.fact(.isTrial, isTrial, other.isTrial)
        made.isIntro = step.fact(.isIntro, isIntro, other.isIntro)
        made.promotionalOfferID = step.fact(.promotionalOfferID, promotionalOfferID, other.promotionalOfferID)
        made.offerCodeRefName = step.fact(.offerCodeRefName, offerCodeRefName, other.offerCodeRefName)
        made.groupID = step.fact(.groupID, groupID, other.groupID)
        made.ownership = step.fact(.ownership, ownership, other.ownership)
        made.appAccountToken = step.fact(.appAccountToken, appAccountToken, other.appAccountToken)
        made.replacedBy = step.fact(.replacedBy, replacedBy, other.replacedBy)
        made.price = step.fact(.price, price, other.price)
        made.revocationPercentage = step.fact(.revocationPercentage, revocationPercentage, other.revocationPercentage)
        made.sale = step.fact(.sale, sale, other.sale)
        // It is a source and no fact: `merging` decides about it.
        made.arrival = arrival
        return made
    }
}

/// The stored form of a period: the values of ``Period`` and ``PeriodDetails``, and only the clocks that differ from
/// the subscription's, or for `ending` from that of its renewal. An answer that merely confirms known facts therefore
/// moves two clocks of the subscription and writes no period.
///
/// `asOf` nil means "the clock of the subscription", and a fact from the newest row has the origin `row`. The form is
/// exact: `SubscriptionFacts(…, records:…)` restores the facts from which `records` was made.
package struct PeriodRecord: Sendable, Hashable {
    /// The facts of ``Period`` and ``PeriodDetails`` that can have a clock of their own; the names are stored.
    package enum FactName: String, Sendable, Hashable, CaseIterable {
        case revocation
        case upgrade
        case originalPurchasedAt = "original_purchased_at"
        case isTrial = "is_trial"
        case isIntro = "is_intro"
        case promotionalOfferID = "promotional_offer_id"
        case offerCodeRefName = "offer_code_ref_name"
        case groupID = "group_id"
        case ownership
        case appAccountToken = "app_account_token"
        case replacedBy = "replaced_by"
        case price
        case revocationPercentage = "revocation_percentage"
        case sale
        /// The row by which it came from another subscription: no fact, only a source.
        case arrival
    }

    /// The stored form of a period's renewal information.
    package struct Ending: Sendable, Hashable {
        /// The renewal, with every field from its newest source.
        package var renewal: Renewal
        /// The instant of the newest row; nil for the clock of the subscription's renewal.
        package var asOf: Instant?
        /// The row's place in the answer.
        package var path: String
        /// Fields that the newest row does not state, with their sources.
        package var olderFields: [RenewalField: FactOrigin]
        /// The first answer that shows that Apple gave up charging: see `RenewalFacts`.
        package var gaveUpAt: Instant?

        /// Creates an ending from its parts.
        package init(
            renewal: Renewal, asOf: Instant?, path: String, olderFields: [RenewalField: FactOrigin] = [:],
            gaveUpAt: Instant? = nil
        ) {
            self.renewal = renewal
            self.asOf = asOf
            self.path = path
            self.olderFields = olderFields
            self.gaveUpAt = gaveUpAt
        }
    }

    /// The ledger's key; nil while the period is not stored.
    package var id: Int64?
    package var webOrderLineItemID: WebOrderLineItemID?
    package var transactionIDs: Set<TransactionID>
    package var terms: Terms
    package var revocation: Fact<Revocation>
    package var upgrade: Fact<Bool>
    @Boxed package var details: PeriodDetails
    /// The instant of the newest row about the period; nil for the subscription's `asOf`.
    package var asOf: Instant?
    /// The place of that row in its answer.
    package var path: String
    /// Apple's information about the renewal that follows the period.
    package var ending: Ending?
    /// Whether it is a renewal, in a record to write: see ``SubscriptionFacts/renewals(by:)``.
    package var isRenewal = false

    /// The origins that differ from the newest row. A flag that no row mentioned has one of its own, because it is stored as
    /// false.
    package var olderFacts: [FactName: FactOrigin] {
        var older = details.origins(apartFrom: .row)
        if details.isTrial == nil { older[.isTrial] = .unspoken }
        if details.isIntro == nil { older[.isIntro] = .unspoken }
        if revocation.origin != .row { older[.revocation] = revocation.origin }
        if upgrade.origin != .row { older[.upgrade] = upgrade.origin }
        older[.arrival] = details.arrival
        return older
    }
}

extension PeriodRecord {
    /// Creates a record of what every period has; the rest is set afterwards.
    package init(
        transactionIDs: Set<TransactionID>, terms: Terms, revocation: Fact<Revocation>, upgrade: Fact<Bool>,
        details: PeriodDetails, path: String
    ) {
        self.init(
            id: nil, transactionIDs: transactionIDs, terms: terms, revocation: revocation, upgrade: upgrade,
            details: details, path: path)
    }
}
