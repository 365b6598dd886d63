/// A value that a source can state for an instant. If two sources of one instant disagree, the value that does not
/// yield is kept, so that merging does not depend on the order in which answers arrive.
package protocol FactValue: Hashable, Sendable {
    /// Returns whether `other` is kept if both were stated for the same instant; a strict total order.
    func yields(to other: Self) -> Bool
}

extension FactValue where Self: Comparable {
    /// Keeps the greater value.
    package func yields(to other: Self) -> Bool { self < other }
}

extension Instant: FactValue {}
extension Int: FactValue {}
extension String: FactValue {}
extension Identifier: FactValue {}

extension Bool: FactValue {
    /// Keeps `true`.
    package func yields(to other: Bool) -> Bool { !self && other }
}

extension Ownership: FactValue {
    /// Keeps the greater of Apple's words.
    package func yields(to other: Ownership) -> Bool { raw < other.raw }
}

/// The source of a fact: its instant, and its place in the answer.
package struct FactOrigin: Sendable {
    /// The instant the source speaks for.
    package var asOf: Instant
    /// The place in the answer, such as `latest_receipt_info[3]`.
    package var path: String
    /// The notation of the fact's instant; nil for the usual form. Not stored and ignored by equality.
    package var form: InstantForm?

    /// Creates an origin from its parts.
    package init(asOf: Instant, path: String, form: InstantForm? = nil) {
        self.asOf = asOf
        self.path = path
        self.form = form
    }

    /// Whether a text of the Server API stated it, also where the path begins with the number of an observation.
    var isOfServerAPI: Bool { path.contains("history[") || path.contains("statuses.") }
    /// Whether a notification stated it, which shows nothing.
    var isOfNotification: Bool { path.contains("notification.") }
}

extension FactOrigin: Hashable {
    /// Returns whether both are the same source.
    package static func == (left: FactOrigin, right: FactOrigin) -> Bool {
        left.asOf == right.asOf && left.path == right.path
    }

    /// Hashes the parts that equality compares.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(asOf)
        hasher.combine(path)
    }
}

/// A value Apple gave, with the instant it applies to and its place in the answer.
package struct Fact<Value: FactValue>: Hashable, Sendable {
    /// The value.
    package var value: Value
    /// The instant and the place in the answer.
    package var origin: FactOrigin

    /// The instant the fact speaks for.
    package var asOf: Instant { origin.asOf }
    /// The fact's place in the answer.
    package var path: String { origin.path }

    /// Creates a fact from its parts.
    package init(_ value: Value, origin: FactOrigin) {
        self.value = value
        self.origin = origin
    }

    /// Creates a fact from its parts.
    package init(_ value: Value, asOf: Instant, path: String) {
        self.init(value, origin: FactOrigin(asOf: asOf, path: path))
    }

    /// Returns the fact if it was stated by an instant.
    func stated(by instant: Instant) -> Fact? { asOf <= instant ? self : nil }

    /// Returns the newer fact; at the same instant the one whose value, then path, does not yield. Commutative,
    /// associative and idempotent.
    package func merging(_ other: Fact) -> Fact {
        if asOf != other.asOf { return asOf < other.asOf ? other : self }
        if value != other.value { return value.yields(to: other.value) ? other : self }
        return path < other.path ? other : self
    }
}

/// Returns what stands for an optional value where texts order facts; a missing value comes first.
func orderText<Value>(_ value: Value?) -> String { value.map { "=\($0)" } ?? "" }

/// Returns the newer of two facts that may be missing.
func newest<Value>(_ left: Fact<Value>?, _ right: Fact<Value>?) -> Fact<Value>? {
    guard let left, let right else { return left ?? right }
    return left.merging(right)
}

extension SubscriptionFacts {
    /// The instants of all sources whose facts still count.
    package var clocks: Set<Instant> {
        periods.reduce(into: Set([asOf, renewal?.asOf].compactMap(\.self))) { $0.formUnion($1.clocks) }
    }
}

extension Period {
    fileprivate var clocks: [Instant] {
        let said = [
            details.originalPurchasedAt?.asOf, details.isTrial?.asOf, details.isIntro?.asOf,
            details.promotionalOfferID?.asOf, details.offerCodeRefName?.asOf, details.groupID?.asOf,
            details.ownership?.asOf, details.appAccountToken?.asOf, details.replacedBy?.asOf,
            details.price?.asOf, details.revocationPercentage?.asOf, details.sale?.asOf, details.arrival?.asOf,
        ]
        return [terms.asOf, revocation.asOf, upgrade.asOf] + said.compactMap(\.self)
            + (renewal.map { [$0.asOf] + $0.standingClocks } ?? [])
    }
}

extension RenewalFacts {
    /// The instants of what is known besides the newest row.
    var standingClocks: [Instant] {
        [
            renewsToProductID?.asOf, willRenew?.asOf, inBillingRetry?.asOf, graceExpiresAt?.asOf,
            graceByStatus?.asOf, term?.asOf, gaveUp?.asOf, gaveUpAt,
        ].compactMap(\.self)
    }
}

extension SubscriptionEvidence {
    /// The instants the evidence speaks for.
    package var clocks: Set<Instant> {
        Set([asOf] + transactions.map(\.asOf) + renewals.map(\.asOf))
    }
}

extension PurchaseEvidence {
    /// The instants the evidence speaks for.
    package var clocks: Set<Instant> { Set([asOf] + transactions.map(\.asOf)) }
}

extension PurchaseFacts {
    /// The instants of all sources whose facts still count.
    package var clocks: Set<Instant> {
        let said = [ownership?.asOf, appAccountToken?.asOf, price?.asOf, revocationPercentage?.asOf, refundShown?.asOf]
        return Set([asOf, terms.asOf, revocation.asOf] + said.compactMap(\.self))
    }
}
