public import Foundation

/// One right of a customer, such as `pro`.
public struct Entitlement: Sendable, Hashable, Decodable {
    /// Where the right comes from. A newer server may know further words; these keep their text.
    public struct Basis: RawRepresentable, Hashable, Sendable, Decodable {
        /// The server's word.
        public let rawValue: String
        /// Makes a basis of a word.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Apple's verified answer.
        public static let verified = Basis(rawValue: "verified")
        /// An import, until Apple is asked.
        public static let provisional = Basis(rawValue: "provisional")
        /// A person granted it.
        public static let byHand = Basis(rawValue: "by_hand")
        /// Nothing grants it any more.
        public static let none = Basis(rawValue: "none")
    }

    /// The state of the subscription behind it, in the words of `docs/lifecycle.md`. A newer server may know further
    /// ones; these keep their text.
    public struct State: RawRepresentable, Hashable, Sendable, Decodable {
        /// The server's word.
        public let rawValue: String
        /// Makes a state of a word.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A paid period runs.
        public static let active = State(rawValue: "active")
        /// A charge failed, and access goes on for Apple's grace period.
        public static let gracePeriod = State(rawValue: "grace_period")
        /// A charge failed, and Apple tries again.
        public static let billingRetry = State(rawValue: "billing_retry")
        /// The period is over and its renewal is expected.
        public static let awaitingRenewal = State(rawValue: "awaiting_renewal")
        /// It is over.
        public static let expired = State(rawValue: "expired")
        /// Apple took it back.
        public static let revoked = State(rawValue: "revoked")
    }

    /// The name that the catalog gives the right.
    public let name: String
    /// Whether the customer has it at the instant of the answer.
    public internal(set) var isGranted: Bool
    /// When it ends; nil when it has no end, or is not granted.
    public internal(set) var until: Date?
    /// When access ended, where it is not granted; nil while it is granted.
    public internal(set) var endedAt: Date?
    /// The product that gives it; nil for one granted by hand.
    public let productID: String?
    /// The state of the subscription behind it; nil where there is none.
    public let state: State?
    /// Why it is in that state, in the server's word.
    public let reason: String?
    /// Apple's environment: `Production` or `Sandbox`.
    public let environment: String?
    /// Where it comes from.
    public let basis: Basis?
    /// Apple's clock of the evidence.
    public let asOf: Date?
    /// When Apple last confirmed it.
    public let checkedAt: Date?

    enum CodingKeys: String, CodingKey {
        case until, state, reason, environment, basis
        case name = "entitlement"
        case isGranted = "granted"
        case endedAt = "ended_at"
        case productID = "product_id"
        case asOf = "as_of"
        case checkedAt = "checked_at"
    }
}

extension Entitlement {
    /// Takes the right away, as the server would have done at this instant.
    mutating func end(at instant: Date) {
        (isGranted, until, endedAt) = (false, nil, instant)
    }
}

/// What a customer may use at one instant.
public struct CustomerEntitlements: Sendable {
    /// Your own id of the customer.
    public let customer: String
    /// The server's clock at the answer.
    public let at: Date
    /// Whether the answer may be outdated: the server says so (Apple could not be asked in time), or the server is away
    /// and this is an earlier answer. ``Entitlement/checkedAt`` says of when it is.
    public internal(set) var isStale: Bool
    /// The longest age in seconds of Apple's newest answer before the server asks again; nil where it does not ask.
    public let maxAgeSeconds: Int?
    /// One for each right that the customer has or had.
    public internal(set) var entitlements: [Entitlement]
    /// Why the server was not asked or did not answer, where this is an earlier answer; nil for an answer of now.
    public internal(set) var failure: PerennialError?

    /// Whether the customer has a right at the instant of the answer. A name that is not in the answer is not granted.
    public func grants(_ name: String) -> Bool {
        entitlements.contains { $0.name == name && $0.isGranted }
    }
}
