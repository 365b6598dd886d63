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
