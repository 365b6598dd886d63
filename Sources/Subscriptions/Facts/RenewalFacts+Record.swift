extension PeriodRecord {
    /// The fields of renewal information that can be older than its newest row; the names are stored.
    package enum RenewalField: String, Sendable, Hashable, CaseIterable {
        /// `auto_renew_product_id`.
        case renewsToProductID = "renews_to_product_id"
        /// `auto_renew_status`.
        case willRenew = "will_renew"
        /// `is_in_billing_retry_period`.
        case inBillingRetry = "in_billing_retry"
        /// `grace_period_expires_date`.
        case graceExpiresAt = "grace_expires_at"
        /// A status of grace without a date.
        case graceByStatus = "grace_by_status"
        /// `commitmentInfo`.
        case term
    }
}

extension PeriodRecord.Ending {
    /// Creates an ending with the clocks that differ from those of the subscription's renewal and of the newest row.
    init(_ facts: RenewalFacts, renewalAsOf: Instant?) {
        var older: [PeriodRecord.RenewalField: FactOrigin] = [:]
        func note<Value>(_ field: PeriodRecord.RenewalField, _ fact: Fact<Value>?) {
            if let fact, fact.origin != facts.row.origin { older[field] = fact.origin }
        }
        note(.renewsToProductID, facts.renewsToProductID)
        note(.willRenew, facts.willRenew)
        note(.inBillingRetry, facts.inBillingRetry)
        note(.graceExpiresAt, facts.graceExpiresAt)
        note(.graceByStatus, facts.graceByStatus)
        note(.term, facts.term)
        self.init(
            renewal: facts.stated.value, asOf: facts.asOf == renewalAsOf ? nil : facts.asOf, path: facts.row.path,
            olderFields: older, gaveUpAt: facts.gaveUpAt)
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
        graceByStatus = ending.renewal.isInGraceByStatus ? fact(.graceByStatus, true) : nil
        term = fact(.term, ending.renewal.term)
        gaveUpAt = ending.gaveUpAt
    }
}
