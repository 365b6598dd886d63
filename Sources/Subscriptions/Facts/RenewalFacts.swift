/// What Apple said of the renewal that follows one period, every field from its newest speaker.
///
/// A row of `pending_renewal_info` says some fields in both senses and leaves others out unless they apply (Apple:
/// "responseBody.Pending_renewal_info"), so a missing field means one of two things:
///
/// * `auto_renew_product_id`, `auto_renew_status`, `is_in_billing_retry_period` and `grace_period_expires_date`: unsaid.
///   What was said last goes on. Apple writes "0" where a status is over, and leaves the date of grace in its data when
///   grace is over, so that a row without them ends nothing.
/// * `expiration_intent`, the two price statuses and the offers of the next renewal: denied. Apple writes them only while
///   they apply.
///
/// Merging is commutative, associative and idempotent.
package struct RenewalFacts: Hashable, Sendable {
    /// What the newest row says of its product, and says or denies of everything else that is denied by silence.
    package var row: Fact<Renewal>
    /// `auto_renew_product_id`.
    package var renewsToProductID: Fact<ProductID>?
    /// `auto_renew_status`.
    package var willRenew: Fact<Bool>?
    /// `is_in_billing_retry_period`.
    package var inBillingRetry: Fact<Bool>?
    /// `grace_period_expires_date`.
    package var graceExpiresAt: Fact<Instant>?
    /// The first answer that gave up, without a date of grace: it said why the subscription ended, and that Apple no longer
    /// tries to charge, or a reason other than a failed payment.
    package var gaveUpAt: Instant?

    /// What one row says.
    package init(_ said: Fact<Renewal>) {
        func fact<Value>(_ value: Value?) -> Fact<Value>? { value.map { Fact($0, origin: said.origin) } }
        let renewal = said.value
        row = Fact(renewal.withoutStanding, origin: said.origin)
        renewsToProductID = fact(renewal.renewsToProductID)
        willRenew = fact(renewal.willRenew)
        inBillingRetry = fact(renewal.inBillingRetry)
        graceExpiresAt = fact(renewal.graceExpiresAt)
        gaveUpAt = renewal.isGivenUp && renewal.graceExpiresAt == nil ? said.asOf : nil
    }

    /// The instant for which its newest row speaks.
    package var asOf: Instant { row.asOf }

    /// All of it as one row would say it now, under the name of the newest row.
    package var said: Fact<Renewal> {
        var renewal = row.value
        renewal.renewsToProductID = renewsToProductID?.value
        renewal.willRenew = willRenew?.value
        renewal.inBillingRetry = inBillingRetry?.value
        renewal.graceExpiresAt = graceExpiresAt?.value
        return Fact(renewal, origin: row.origin)
    }

    /// Both together.
    package func merging(_ other: RenewalFacts) -> RenewalFacts {
        var merged = self
        merged.row = row.merging(other.row)
        merged.renewsToProductID = newest(renewsToProductID, other.renewsToProductID)
        merged.willRenew = newest(willRenew, other.willRenew)
        merged.inBillingRetry = newest(inBillingRetry, other.inBillingRetry)
        merged.graceExpiresAt = newest(graceExpiresAt, other.graceExpiresAt)
        merged.gaveUpAt = [gaveUpAt, other.gaveUpAt].compactMap(\.self).min()
        return merged
    }

    /// When grace ends: at Apple's date, or at the first answer before it that gave up, unless the date was said again
    /// since and holds. Until then access was given, whatever Apple says later.
    var graceEndsAt: Instant? {
        guard let grace = graceExpiresAt else { return nil }
        guard let gaveUpAt else { return grace.value }
        let isOver = grace.asOf < gaveUpAt || said.value.isGivenUp && grace.asOf < row.asOf
        return isOver ? min(grace.value, gaveUpAt) : grace.value
    }
}

/// Merges what may not have been said at all.
func merged(_ left: RenewalFacts?, _ right: RenewalFacts?) -> RenewalFacts? {
    guard let left, let right else { return left ?? right }
    return left.merging(right)
}

extension Renewal {
    /// Whether it says why the subscription ended for good: retry counts beside intent 2 only, as in the decision table.
    fileprivate var isGivenUp: Bool {
        guard let expirationIntent else { return false }
        return expirationIntent != "2" || inBillingRetry == false
    }

    /// What a row that leaves it out denies: without the fields whose absence says nothing.
    var withoutStanding: Renewal {
        var rest = self
        rest.renewsToProductID = nil
        rest.willRenew = nil
        rest.inBillingRetry = nil
        rest.graceExpiresAt = nil
        return rest
    }
}
