/// Something a customer, a bank or Apple does at one instant.
public struct CustomerAction: Codable, Sendable {
    /// What is done.
    public enum Kind: String, Codable, Sendable, CaseIterable {
        /// Apple refunds the period that runs, or an older one.
        case refund
        /// The newest refund is taken back.
        case reverseRefund = "reverse_refund"
        /// The customer turns renewal off.
        case disableRenewal = "disable_renewal"
        /// The customer turns renewal on.
        case enableRenewal = "enable_renewal"
        /// The card fails from now on.
        case failBilling = "fail_billing"
        /// The card works again; a subscription in retry is charged at once.
        case recover
        /// To the higher level, at once.
        case upgrade
        /// To another product at the next renewal.
        case downgrade
        /// A lapsed customer buys again.
        case resubscribe
        /// The account disappears.
        case deleteAccount = "delete_account"
        /// The organiser stops sharing.
        case revokeFamily = "revoke_family"
        /// The running period ends later.
        case extend
    }

    /// What is done.
    public var kind: Kind
    /// For `refund`: renewal stays on (Apple usually turns it off).
    public var keepsRenewal: Bool?
    /// For `refund`: 0 or nil is the period that runs, 1 the one before.
    public var periodsAgo: Int?
    /// For `refund`: Apple's `cancellation_reason`, 0 or 1.
    public var reason: Int?
    /// For `downgrade` and `resubscribe`: the product; a default is chosen without it.
    public var product: SubscriptionProduct?
    /// For `extend`: seconds, rounded up to whole ones; a quarter of the period without it.
    public var seconds: Double?

    /// Makes an action with its defaults.
    public init(_ kind: Kind) {
        self.kind = kind
    }

    enum CodingKeys: String, CodingKey {
        case kind = "action"
        case keepsRenewal = "keep_renewal"
        case periodsAgo = "periods_ago"
        case reason, product, seconds
    }
}

/// An action that makes no sense in the customer's present situation. Nothing was changed.
public struct ActionRefused: Error, Sendable, CustomStringConvertible {
    /// Why, in a short sentence.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
