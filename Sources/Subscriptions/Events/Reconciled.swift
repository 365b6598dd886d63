/// What one more answer made of a subscription.
public struct Reconciled: Sendable, Hashable {
    /// The new state; its version is higher by one if `changed`.
    public var state: SubscriptionState
    /// What happened, in order.
    public var events: [Event]
    /// Whether anything but clocks and paths differs, or something happened.
    public var changed: Bool

    /// A result from its parts.
    public init(state: SubscriptionState, events: [Event], changed: Bool) {
        self.state = state
        self.events = events
        self.changed = changed
    }
}
