/// Apple's information about the renewal of a subscription: the meaning of one row of `pending_renewal_info`.
package struct Renewal: Hashable, Sendable, FactValue {
    /// `product_id`: the current product.
    package var productID: ProductID
    /// `auto_renew_product_id`: the product that will renew.
    package var renewsToProductID: ProductID?
    /// `auto_renew_status`.
    package var willRenew: Bool?
    /// `expiration_intent`, raw: 1 voluntary, 2 billing, 3 price increase, 4 product not for sale, 5 other.
    package var expirationIntent: String?
    /// `is_in_billing_retry_period`; also true during grace.
    package var inBillingRetry: Bool?
    /// `grace_period_expires_date`; it remains in the data after grace is over.
    package var graceExpiresAt: Instant?
    /// Whether a status of the Server API says grace without a date that is still ahead; nil where none is stated.
    package var isInGraceByStatus: Bool?
    /// `price_consent_status`, raw: "0" means the customer was asked and has not agreed.
    package var priceConsentStatus: String?
    /// `price_increase_status`, raw: "0" not agreed yet, "1" agreed or informed.
    package var priceIncreaseStatus: String?
    /// `promotional_offer_id` of the next renewal.
    package var promotionalOfferID: String?
    /// `offer_code_ref_name` of the next renewal.
    package var offerCodeRefName: String?

    /// What the customer wants after the term of payments that runs; nil where that is not stated.
    package var term: TermWill?

    /// Whether the customer wants to go on: within a term of payments after it, whatever Apple will try before.
    package var isWanted: Bool? { term?.renews ?? willRenew }

    /// The product that the customer wants next: within a term of payments after it.
    package var wantedProductID: ProductID? { term?.productID ?? renewsToProductID }

    /// Whether nothing contradicts a renewal: not switched off, no intent, no billing retry.
    package var isExpected: Bool { willRenew != false && expirationIntent == nil && inBillingRetry != true }

    /// Whether Apple may still try to charge: it names a failed payment, and has not stated that it gave up.
    package var mayRecover: Bool { expirationIntent == "2" && inBillingRetry != false }

    /// Whether the customer was asked to agree to a higher price and has not.
    package var awaitsPriceConsent: Bool { priceConsentStatus == "0" || priceIncreaseStatus == "0" }

    /// Orders renewals. Any total order suffices: no two different renewals of one instant are known to occur.
    package func yields(to other: Renewal) -> Bool {
        orderedFields.lexicographicallyPrecedes(other.orderedFields)
    }

    private var orderedFields: [String] { words.map(orderText) }

    /// Every field as text; nil for one that is not stated.
    package var words: [String?] {
        [
            graceExpiresAt.map { "\($0.milliseconds)" }, willRenew.map { "\($0)" }, expirationIntent,
            inBillingRetry.map { "\($0)" }, productID.text, renewsToProductID?.text, priceConsentStatus,
            priceIncreaseStatus, promotionalOfferID, offerCodeRefName, isInGraceByStatus.map { "\($0)" }, term?.words,
        ]
    }
}

extension Renewal {
    /// Creates a renewal that states its product alone; the rest is set afterwards.
    package init(productID: ProductID) { self.init(productID: productID, renewsToProductID: nil) }
}

/// Apple's information about the renewal that follows one period, with every field from its newest source.
///
/// A row of `pending_renewal_info` states some fields whether they are true or false, and states others only while they
/// apply (Apple: "responseBody.Pending_renewal_info"). A missing field therefore means one of two things:
///
/// * `auto_renew_product_id`, `auto_renew_status`, `is_in_billing_retry_period` and `grace_period_expires_date`: not
///   stated. The last known value remains. Apple writes "0" when a status is over, and leaves the date of grace in its
///   data after grace is over, so a row without these fields ends nothing.
/// * `expiration_intent`, the two price statuses and the offers of the next renewal: denied. Apple writes them only
///   while they apply.
///
/// A grace that was granted, by a date or by a status without one, goes on until Apple says that it is over: see `gaveUp`.
///
/// The state does not rest on a retry that a newer row left out: see `retriesNow`.
///
/// Merging is commutative, associative and idempotent.
package struct RenewalFacts: Hashable, Sendable {
    /// The newest row's product, and every field whose absence is a denial.
    package var row: Fact<Renewal>
    /// `auto_renew_product_id`.
    package var renewsToProductID: Fact<ProductID>?
    /// `auto_renew_status`.
    package var willRenew: Fact<Bool>?
    /// `is_in_billing_retry_period`.
    package var inBillingRetry: Fact<Bool>?
    /// `grace_period_expires_date`.
    package var graceExpiresAt: Fact<Instant>?
    /// What the customer wants after a term of payments. verifyReceipt does not speak of it, so absence means nothing; a
    /// signed text that no term runs says so.
    package var term: Fact<TermWill>?
    /// A status of grace without a date of its end: true, with the newest row that had it.
    package var graceByStatus: Fact<Bool>?
    /// What ends grace: true, with the newest row after the end of the period that has no date of grace still ahead,
    /// and either another status than grace, or a reason for the end that is no failed payment or is final because
    /// Apple no longer tries to charge.
    package var gaveUp: Fact<Bool>?
    /// The instant of the first such row.
    package var gaveUpAt: Instant?

    /// Creates the facts that one row states.
    package init(_ said: Fact<Renewal>) {
        func fact<Value>(_ value: Value?) -> Fact<Value>? { value.map { Fact($0, origin: said.origin) } }
        let renewal = said.value
        row = Fact(renewal.withoutStanding, origin: said.origin)
        renewsToProductID = fact(renewal.renewsToProductID)
        willRenew = fact(renewal.willRenew)
        inBillingRetry = fact(renewal.inBillingRetry)
        graceExpiresAt = fact(renewal.graceExpiresAt)
        graceByStatus = renewal.isInGraceByStatus == true ? fact(true) : nil
        term = fact(renewal.term)
        gaveUp = renewal.endsGrace(at: said.asOf) ? fact(true) : nil
        gaveUpAt = gaveUp?.asOf
    }

    /// The instant of the newest row.
    package var asOf: Instant { row.asOf }

    /// What decides: all fields combined as the newest row would state them now, without a retry that no longer counts.
    package var said: Fact<Renewal> {
        var said = stated
        if said.value.inBillingRetry == true, !retriesNow { said.value.inBillingRetry = nil }
        return said
    }

    /// Whether Apple's newest word is that it tries to charge. A newer row about `auto_renew_status`, or with a reason for
    /// the end, that leaves the flag out says that it does not, as it does where it is read alone.
    private var retriesNow: Bool {
        guard let retry = inBillingRetry, retry.value else { return false }
        let isDeniedByReason = row.value.expirationIntent != nil && retry.asOf < row.asOf
        return !isDeniedByReason && retry.asOf >= willRenew?.asOf ?? retry.asOf
    }

    /// All fields combined, each as it was stated last: what is stored.
    var stated: Fact<Renewal> {
        var renewal = row.value
        renewal.renewsToProductID = renewsToProductID?.value
        renewal.willRenew = willRenew?.value
        renewal.inBillingRetry = inBillingRetry?.value
        renewal.graceExpiresAt = graceExpiresAt?.value
        renewal.isInGraceByStatus = graceByStatus?.value
        renewal.term = term?.value
        return Fact(renewal, origin: row.origin)
    }

    /// Returns the facts of both, with every field from its newest source.
    package func merging(_ other: RenewalFacts) -> RenewalFacts {
        var merged = updated(by: other)
        merged.row = row.merging(other.row)
        merged.gaveUpAt = [gaveUpAt, other.gaveUpAt].compactMap(\.self).min()
        return merged
    }

    /// Returns the facts that were stated by an instant; nil if none was. A newer row is only dated back.
    func stated(by instant: Instant) -> RenewalFacts? {
        var rest = only(statedBy: instant)
        if row.asOf > instant { rest.row.origin = FactOrigin(asOf: instant, path: "") }
        if let gaveUpAt, gaveUpAt > instant { rest.gaveUpAt = nil }
        rest.gaveUp = rest.gaveUpAt.map { rest.gaveUp ?? Fact(true, asOf: $0, path: "") }
        return row.asOf > instant && rest.factClocks.isEmpty ? nil : rest
    }

    /// Returns the facts as they are about the end of a period: without those that Apple stated before, and after the last
    /// payment of a term with the customer's will in place of Apple's status.
    ///
    /// A reason for the end, a failed charge and grace exist only after an end (Apple:
    /// "responseBody.Pending_renewal_info"). Stated while a period runs, they are about an earlier one. Only a payment of
    /// a term may have failed before, up to a day ahead (Apple: "Managing the life cycle of monthly subscriptions …").
    func after(_ period: Period) -> RenewalFacts {
        var facts = self
        let end = period.expiresAt
        let mayFailAt = period.isMonthly ? max(period.purchasedAt, end - .days(1)) : end
        if row.asOf < end, row.asOf < mayFailAt || row.value.expirationIntent != "2" {
            facts.row.value.expirationIntent = nil
        }
        if let said = inBillingRetry?.asOf, said < mayFailAt { facts.inBillingRetry = nil }
        if let said = graceExpiresAt?.asOf, said < end { facts.graceExpiresAt = nil }
        if let said = graceByStatus?.asOf, said < end { facts.graceByStatus = nil }
        if let gaveUp, let gaveUpAt {
            (facts.gaveUp, facts.gaveUpAt) = gaveUp.asOf < end ? (nil, nil) : (gaveUp, max(gaveUpAt, end))
        }
        if let term, let renews = term.value.renews, period.payment?.isLast == true {
            facts.willRenew = Fact(renews, origin: term.origin)
        }
        return facts
    }

    /// The date of grace, unless Apple's status said grace when it was over already.
    private var graceDate: Instant? {
        guard let date = graceExpiresAt?.value else { return nil }
        if let graceByStatus, date <= graceByStatus.asOf { return nil }
        return date
    }

    /// The newest row that granted grace, with a date or without one.
    private var grantedAt: Instant? {
        let dated = graceDate == nil ? nil : graceExpiresAt?.asOf
        return [dated, graceByStatus?.asOf].compactMap(\.self).max()
    }

    /// When Apple ended the grace that it granted last: the first row that says so, but no earlier than the grant.
    var graceEndedAt: Instant? {
        guard let grantedAt, let gaveUp, let gaveUpAt, gaveUp.asOf > grantedAt else { return nil }
        return max(gaveUpAt, grantedAt)
    }

    /// Returns the end of grace: its date, else the given longest; earlier where Apple ended it before. Access until then
    /// remains granted, whatever Apple states later.
    func graceEnds(orBy longest: Instant) -> Instant? {
        guard grantedAt != nil else { return nil }
        let end = graceDate ?? longest
        return min(end, graceEndedAt ?? end)
    }

    /// Whether grace rests on Apple's status, without a date of its end.
    var isGraceAssumed: Bool { graceByStatus != nil && graceDate == nil }
}

extension RenewalFacts: FactGroup {
    package typealias Name = PeriodRecord.RenewalField

    @discardableResult
    package func each(beside other: RenewalFacts, _ step: inout some FactStep<Name>) -> RenewalFacts {
        var made = self
        made.renewsToProductID = step.fact(.renewsToProductID, renewsToProductID, other.renewsToProductID)
        made.willRenew = step.fact(.willRenew, willRenew, other.willRenew)
        made.inBillingRetry = step.fact(.inBillingRetry, inBillingRetry, other.inBillingRetry)
        made.graceExpiresAt = step.fact(.graceExpiresAt, graceExpiresAt, other.graceExpiresAt)
        made.graceByStatus = step.fact(.graceByStatus, graceByStatus, other.graceByStatus)
        made.gaveUp = step.fact(.gaveUp, gaveUp, other.gaveUp)
        made.term = step.fact(.term, term, other.term)
        return made
    }
}

/// Merges renewal information that may be missing.
func merged(_ left: RenewalFacts?, _ right: RenewalFacts?) -> RenewalFacts? {
    guard let left, let right else { return left ?? right }
    return left.merging(right)
}

extension Renewal {
    /// Whether it states why the subscription ended for good. Retry counts only beside intent 2, as in the table.
    var isGivenUp: Bool {
        guard let expirationIntent else { return false }
        return expirationIntent != "2" || inBillingRetry == false
    }

    /// Whether the row of an instant ends grace. A date of grace that is still ahead stands, whatever else it states.
    fileprivate func endsGrace(at instant: Instant) -> Bool {
        if let graceExpiresAt, graceExpiresAt > instant { return false }
        return isInGraceByStatus.map { !$0 } ?? isGivenUp
    }

    /// The fields whose absence is a denial, without those whose absence means nothing.
    var withoutStanding: Renewal {
        var rest = self
        (rest.renewsToProductID, rest.willRenew, rest.inBillingRetry, rest.graceExpiresAt) = (nil, nil, nil, nil)
        (rest.isInGraceByStatus, rest.term) = (nil, nil)
        return rest
    }
}

extension PeriodRecord {
    /// The fields of ``RenewalFacts`` that can be older than the newest row; the names are stored.
    package enum RenewalField: String, Sendable, Hashable, CaseIterable {
        case renewsToProductID = "renews_to_product_id"
        case willRenew = "will_renew"
        case inBillingRetry = "in_billing_retry"
        case graceExpiresAt = "grace_expires_at"
        case graceByStatus = "grace_by_status"
        case gaveUp = "gave_up"
        case term
    }
}

extension PeriodRecord.Ending {
    /// Creates an ending with the clocks that differ from those of the subscription's renewal and of the newest row.
    init(_ facts: RenewalFacts, renewalAsOf: Instant?) {
        self.init(
            renewal: facts.stated.value, asOf: facts.asOf == renewalAsOf ? nil : facts.asOf, path: facts.row.path,
            olderFields: facts.origins(apartFrom: facts.row.origin), gaveUpAt: facts.gaveUpAt)
    }
}

extension RenewalFacts {
    /// Restores the facts from which a record was made.
    init(_ ending: PeriodRecord.Ending, renewalAsOf: Instant) {
        let newest = FactOrigin(asOf: ending.asOf ?? renewalAsOf, path: ending.path)
        func fact<Value>(_ field: PeriodRecord.RenewalField, _ value: Value?) -> Fact<Value>? {
            value.map { Fact($0, origin: ending.olderFields[field] ?? newest) }
        }
        row = Fact(ending.renewal.withoutStanding, origin: newest)
        renewsToProductID = fact(.renewsToProductID, ending.renewal.renewsToProductID)
        willRenew = fact(.willRenew, ending.renewal.willRenew)
        inBillingRetry = fact(.inBillingRetry, ending.renewal.inBillingRetry)
        graceExpiresAt = fact(.graceExpiresAt, ending.renewal.graceExpiresAt)
        graceByStatus = fact(.graceByStatus, ending.renewal.isInGraceByStatus)
        term = fact(.term, ending.renewal.term)
        gaveUpAt = ending.gaveUpAt
        gaveUp = fact(.gaveUp, gaveUpAt.map { _ in true })
    }
}

extension Renewal {
    /// Returns the product that will replace the given one; nil if the same product renews, if the change already
    /// happened, or if the renewal is another product's.
    func change(from product: ProductID) -> ProductID? {
        guard concerns(product), let next = wantedProductID, next != productID, next != product else { return nil }
        return next
    }

    /// Returns the plan that will follow, `upfront` or `monthly`; nil if it stays the same, or if either is not known.
    func planChange(from period: Period) -> String? {
        guard concerns(period.productID), let plan = term?.plan, let next = Sale.word(of: plan),
            let present = period.planWord
        else { return nil }
        return next == present ? nil : next
    }

    /// Returns whether another product or another plan will follow.
    func changes(from period: Period) -> Bool {
        change(from: period.productID) != nil || planChange(from: period) != nil
    }

    /// Whether it is the renewal of the product: Apple may still report that of a product which another one replaced.
    func concerns(_ product: ProductID) -> Bool { productID == product }
}
