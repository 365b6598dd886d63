/// Who changes something: what the audit remembers of them.
package enum Actor: Sendable, Hashable {
    /// A caller of the HTTP API, by the number of their key.
    case key(Int32)
    /// Whoever runs a command, by the name the operating system knows them by.
    case user(String)

    /// The key's number, when it is one.
    var key: Int32? {
        switch self {
        case .key(let number): number
        case .user: nil
        }
    }

    /// The user's name, when it is one.
    var user: String? {
        switch self {
        case .key: nil
        case .user(let name): name
        }
    }
}

extension SubscriptionLedger {
    /// The same ledger in the hands of `actor`: what is written through it is remembered as theirs.
    ///
    /// A ledger in nobody's hands, as workers use it, remembers no one.
    package func acting(as actor: Actor) -> SubscriptionLedger {
        var ledger = self
        ledger.actor = actor
        return ledger
    }
}
