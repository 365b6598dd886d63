/// When to ask Apple again about a receipt.
package enum CheckPlan: Sendable, Hashable {
    /// At this instant, in the clock that gave `now`.
    case at(Instant)
    /// Not before a new upload or a hint of Apple's.
    case retired
}

/// How the last check of a receipt ended, as far as the schedule cares.
package enum CheckOutcome: Sendable, Hashable {
    /// Apple vouched for the receipt.
    case verified
    /// Apple, or the app's rule, did not; `since` is when the first of the refusals in a row came,
    /// `wasVerified` whether Apple vouched for the receipt before.
    case rejected(Refusal.Kind, since: Instant, wasVerified: Bool)
    /// There was no usable answer. A customer waits for the answer of a `new` receipt.
    case indeterminate(new: Bool)
}
