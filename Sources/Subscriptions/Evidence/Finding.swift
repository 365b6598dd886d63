/// The conclusion from an answer of Apple's. Only `verified` changes facts.
package enum Finding: Sendable {
    /// Apple vouches for the receipt and gives this evidence.
    case verified(Evidence)
    /// Apple, or the app's own rule, does not vouch for the receipt. By itself this ends no customer's access.
    case rejected(Refusal)
    /// No usable answer: an outage says nothing about the receipt.
    case indeterminate(CheckFailure)
}

/// The reason a receipt was not vouched for.
package struct Refusal: Sendable, Hashable {
    /// The kind of refusal; the schedule and the circuit breakers depend on it.
    package enum Kind: Hashable, Sendable, CaseIterable {
        /// The answer is genuine but belongs to another app.
        case otherBundle
        /// 21003: the receipt could not be authenticated.
        case notAuthentic
        /// 21004: the shared secret is not this app's; says nothing about the receipt.
        case wrongSecret
        /// 21010: the user account is gone.
        case accountGone
        /// 21007 or 21008 as the final answer.
        case wrongEnvironment
        /// 21000: Apple could not read the request.
        case badRequest
        /// The Server API knows no such transaction (4040010, 4040005), or not its customer any more (4040001).
        case unknownTransaction
    }

    /// One sentence for people.
    package var reason: String
    /// Apple's status, if it gave one.
    package var status: Int?
    /// Whether asking again may help.
    package var retryable: Bool
    /// The kind of refusal.
    package var kind: Kind

    /// Creates a refusal from its parts.
    package init(reason: String, status: Int?, retryable: Bool, kind: Kind) {
        self.reason = reason
        self.status = status
        self.retryable = retryable
        self.kind = kind
    }
}

/// The reason there is no usable answer.
package struct CheckFailure: Sendable, Hashable {
    /// The kind of failure.
    package enum Kind: Hashable, Sendable, CaseIterable {
        /// Apple said nothing, or nothing about the receipt.
        case noUsableAnswer
        /// Apple's clock, or the database's, is so wrong that the answer applies to no known instant.
        case clockAhead
        /// Apple does not accept the app's key, or does not know the app: the whole app waits.
        case appRefused
        /// Apple was not asked, because it refuses the app's shared secret in that environment.
        case heldBack
    }

    /// One sentence for people.
    package var reason: String
    /// Apple's status, if it gave one.
    package var status: Int?
    /// Whether asking again may help.
    package var retryable: Bool

    /// The kind of failure.
    package var kind: Kind

    /// Creates a failure from its parts.
    package init(reason: String, status: Int?, retryable: Bool, kind: Kind = .noUsableAnswer) {
        self.reason = reason
        self.status = status
        self.retryable = retryable
        self.kind = kind
    }

    /// Returns a failure: Apple's clock is too far ahead of the database's for the answer to be credible.
    package static func clockAhead(by ahead: Delay, status: Int?) -> CheckFailure {
        CheckFailure(
            reason: "Apple's clock is \(ahead.inMinutes) ahead of the database's, so the answer is not believed; "
                + "check the clock of the database's machine.",
            status: status, retryable: true, kind: .clockAhead)
    }
}

extension Delay {
    /// The length in minutes, rounded, in words.
    var inMinutes: String {
        let minutes = (milliseconds + 30_000) / 60_000
        return minutes == 1 ? "1 minute" : "\(minutes) minutes"
    }
}
