/// The plan for asking Apple again about a receipt.
package enum CheckPlan: Sendable, Hashable {
    /// At this instant, on the clock that gave `now`.
    case at(Instant)
    /// Not before a new upload or a hint from Apple.
    case retired
}

/// The outcome of the last check of a receipt, as far as the schedule depends on it.
package enum CheckOutcome: Sendable, Hashable {
    /// Apple vouched for the receipt.
    case verified
    /// Apple, or the app's rule, did not. `since` is the instant of the first of the consecutive refusals;
    /// `wasVerified` says whether Apple vouched for the receipt before.
    case rejected(Refusal.Kind, since: Instant, wasVerified: Bool)
    /// There was no usable answer. A customer is waiting for the answer to a `new` receipt.
    case indeterminate(new: Bool)
}
