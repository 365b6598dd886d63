/// A value that can be said at an instant.
///
/// When two speakers of the same instant disagree, the one whose value does not yield is kept, so that merging does not
/// depend on the order in which answers arrive.
package protocol FactValue: Hashable, Sendable {
    /// Whether `other` is kept when both were said at the same instant; a strict total order.
    func yields(to other: Self) -> Bool
}

extension FactValue where Self: Comparable {
    /// The greater value is kept.
    package func yields(to other: Self) -> Bool { self < other }
}

extension Instant: FactValue {}
extension String: FactValue {}
extension Identifier: FactValue {}

extension Bool: FactValue {
    /// `true` is kept.
    package func yields(to other: Bool) -> Bool { !self && other }
}

extension Ownership: FactValue {
    /// The greater of Apple's words is kept.
    package func yields(to other: Ownership) -> Bool { raw < other.raw }
}

/// Who said something: when, and where in the answer.
package struct FactOrigin: Sendable {
    /// The instant the speaker spoke for.
    package var asOf: Instant
    /// Where it stood in the answer, such as `latest_receipt_info[3]`.
    package var path: String
    /// How the fact's instant was written; nil for the usual form. Not stored and ignored by equality.
    package var form: InstantForm?

    /// An origin from its parts.
    package init(asOf: Instant, path: String, form: InstantForm? = nil) {
        self.asOf = asOf
        self.path = path
        self.form = form
    }
}

extension FactOrigin: Hashable {
    /// Whether both are the same speaker.
    package static func == (left: FactOrigin, right: FactOrigin) -> Bool {
        left.asOf == right.asOf && left.path == right.path
    }

    /// Hashes what equality compares.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(asOf)
        hasher.combine(path)
    }
}

/// Something Apple said, with the instant it speaks for and where it stood.
package struct Fact<Value: FactValue>: Hashable, Sendable {
    /// What was said.
    package var value: Value
    /// When and where.
    package var origin: FactOrigin

    /// The instant it speaks for.
    package var asOf: Instant { origin.asOf }
    /// Where it stood in the answer.
    package var path: String { origin.path }

    /// A fact from its parts.
    package init(_ value: Value, origin: FactOrigin) {
        self.value = value
        self.origin = origin
    }

    /// A fact from its parts.
    package init(_ value: Value, asOf: Instant, path: String) {
        self.init(value, origin: FactOrigin(asOf: asOf, path: path))
    }

    /// The newest speaker's fact; of the same instant the one whose value, then path, does not yield.
    ///
    /// Commutative, associative and idempotent.
    package func merging(_ other: Fact) -> Fact {
        if asOf != other.asOf { return asOf < other.asOf ? other : self }
        if value != other.value { return value.yields(to: other.value) ? other : self }
        return path < other.path ? other : self
    }
}

/// Merges facts that may not have been said at all.
func newest<Value>(_ left: Fact<Value>?, _ right: Fact<Value>?) -> Fact<Value>? {
    guard let left, let right else { return left ?? right }
    return left.merging(right)
}
