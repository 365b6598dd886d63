/// The state of a subscription at one instant, and why.
package struct Verdict: Sendable, Hashable {
    /// The state.
    package var state: State
    /// The reason, for expired, revoked and awaiting renewal.
    package var reason: Reason?
    /// Whether the customer has access.
    package var entitled: Bool
    /// The product of the running period, otherwise of the last one.
    package var productID: ProductID
    /// Apple's expiry of the last period charged; of the refunded period if revoked.
    package var expiresAt: Instant
    /// The end of access if nothing more is learnt; nil without access.
    package var entitledUntil: Instant?
    /// The flags of the running period, otherwise of the last one; sorted.
    package var flags: [Flag]
    /// The fields that decided, in the order they were examined.
    package var because: [Ground]

    /// Creates a verdict from its parts; access follows from the state.
    package init(
        state: State, reason: Reason?, productID: ProductID, expiresAt: Instant, entitledUntil: Instant?,
        flags: [Flag], because: [Ground]
    ) {
        self.state = state
        self.reason = reason
        self.entitled = state.isEntitled
        self.productID = productID
        self.expiresAt = expiresAt
        self.entitledUntil = entitledUntil
        self.flags = flags
        self.because = because
    }
}

/// One field that led to a verdict.
package struct Ground: Sendable, Hashable {
    /// The row of the decision table, such as `running_period`; docs/lifecycle.md lists them.
    package var rule: String
    /// The field, such as `latest_receipt_info[0].expires_date_ms`; empty if the answer contains none.
    package var path: String
    /// The field's value as Apple wrote it; empty if the answer contains none.
    package var value: String

    /// Creates a ground from its parts.
    package init(rule: String, path: String, value: String) {
        self.rule = rule
        self.path = path
        self.value = value
    }
}
