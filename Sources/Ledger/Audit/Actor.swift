/// The actor of a change, as the audit log records it.
package enum Actor: Sendable, Hashable {
    /// A caller of the HTTP API, by the number of its key.
    case key(Int32)
    /// The user who runs a command, by operating-system user name.
    case user(String)

    /// The key's number, if the actor is a key.
    var key: Int32? {
        switch self {
        case .key(let number): number
        case .user: nil
        }
    }

    /// The user's name, if the actor is a user.
    var user: String? {
        switch self {
        case .key: nil
        case .user(let name): name
        }
    }
}

extension SubscriptionLedger {
    /// Returns the same ledger with `actor` as the recorded author of what is written through it.
    ///
    /// A ledger without an actor, as workers use it, writes no audit log.
    package func acting(as actor: Actor) -> SubscriptionLedger {
        var ledger = self
        ledger.actor = actor
        return ledger
    }
}
