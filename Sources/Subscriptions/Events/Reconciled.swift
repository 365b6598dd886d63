/// The result of merging one more answer into a subscription.
package struct Reconciled: Sendable, Hashable {
    /// The new state; its version is one higher if `changed`.
    package var state: SubscriptionState
    /// The events, in order.
    package var events: [Event]
    /// Whether anything besides clocks and paths differs, or an event happened.
    package var changed: Bool

    /// Creates a result from its parts.
    package init(state: SubscriptionState, events: [Event], changed: Bool) {
        self.state = state
        self.events = events
        self.changed = changed
    }
}
