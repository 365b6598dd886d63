/// What a subscription is at one instant, and why.
public struct Verdict: Sendable, Hashable {
    /// The state.
    public var state: State
    /// Why, for expired, revoked and awaiting.
    public var reason: Reason?
    /// Whether access is given.
    public var entitled: Bool
    /// The product of the running, else of the last period.
    public var productID: ProductID
    /// Apple's expiry of the last period charged; of the refunded one when revoked.
    public var expiresAt: Instant
    /// When access ends if nothing more is learnt; nil without access.
    public var entitledUntil: Instant?
    /// Sorted; of the running, else of the last period.
    public var flags: [Flag]
    /// The fields that decided, in the order they were looked at.
    public var because: [Ground]

    /// A verdict from its parts; access follows from the state.
    public init(
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
public struct Ground: Sendable, Hashable {
    /// The row of the decision table, such as `running_period`; docs/lifecycle.md lists them.
    public var rule: String
    /// The field, such as `latest_receipt_info[0].expires_date_ms`; empty when the answer says nothing.
    public var path: String
    /// The field's value as Apple wrote it; empty when the answer says nothing.
    public var value: String

    /// A ground from its parts.
    public init(rule: String, path: String, value: String) {
        self.rule = rule
        self.path = path
        self.value = value
    }
}
