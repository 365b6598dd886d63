/// What one more answer made of a subscription.
package struct Reconciled: Sendable, Hashable {
    /// The new state; its version is higher by one if `changed`.
    package var state: SubscriptionState
    /// What happened, in order.
    package var events: [Event]
    /// Whether anything but clocks and paths differs, or something happened.
    package var changed: Bool

    /// A result from its parts.
    package init(state: SubscriptionState, events: [Event], changed: Bool) {
        self.state = state
        self.events = events
        self.changed = changed
    }
}
