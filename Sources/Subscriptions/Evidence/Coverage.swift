/// How much evidence speaks for.
package enum Coverage: String, Sendable, Hashable, CaseIterable {
    /// All that Apple knows at its instant: an answer of verifyReceipt, or statuses with the complete history. A period
    /// that it lacks does not exist.
    case whole
    /// Status, latest transaction and renewal of a subscription. It shows how the subscription stands, provided that it
    /// joins the known periods and agrees with them.
    case head
    /// Anything less, such as one refunded transaction. It shows nothing about the time after what it states.
    case piece
}

/// Apple's status of a subscription (Apple: "status" of the App Store Server API).
package enum AppleStatus: Int, Sendable, Hashable, CaseIterable {
    /// The subscription is active.
    case active = 1
    /// It is expired.
    case expired = 2
    /// Apple tries to charge again, without access.
    case billingRetry = 3
    /// Apple tries to charge again, with access.
    case gracePeriod = 4
    /// It was refunded, or revoked from the family.
    case revoked = 5
}

extension AppleStatus {
    /// Creates the status that Apple gives for a state; nil for a state that awaits Apple's answer.
    package init?(_ state: State) {
        switch state {
        case .active: self = .active
        case .expired: self = .expired
        case .billingRetry: self = .billingRetry
        case .gracePeriod: self = .gracePeriod
        case .revoked: self = .revoked
        case .awaitingRenewal: return nil
        }
    }
}
