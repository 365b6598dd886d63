/// A value that a source can state for an instant. If two sources of one instant disagree, the value that does not
/// yield is kept, so that merging does not depend on the order in which answers arrive.
package protocol FactValue: Hashable, Sendable {
    /// Returns whether `other` is kept if both were stated for the same instant; a strict total order.
    func yields(to other: Self) -> Bool

    /// The value that a fact of a period or a purchase is equal to where no source states it; nil for most. Facts of
    /// renewals are not compared so: there a missing flag is one that is not stated.
    static var unstated: Self? { get }

    /// The value for a reader.
    var words: String { get }
}

extension FactValue {
    package static var unstated: Self? { nil }
    package var words: String { "\(self)" }
}

extension FactValue where Self: Comparable {
    /// Keeps the greater value.
    package func yields(to other: Self) -> Bool { self < other }
}

extension Instant: FactValue {
    package var words: String { iso8601 }
}

extension Int: FactValue {}
extension String: FactValue {}
extension Identifier: FactValue {}

extension Bool: FactValue {
    /// Keeps `true`.
    package func yields(to other: Bool) -> Bool { !self && other }

    /// An offer that no row mentions is an offer denied.
    package static var unstated: Bool? { false }
}

extension Ownership: FactValue {
    /// Keeps the greater of Apple's words.
    package func yields(to other: Ownership) -> Bool { raw < other.raw }

    package var words: String { raw }
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

    /// The origin of a fact that no source has stated yet: older than every source.
    package static let unspoken = FactOrigin(asOf: Instant(milliseconds: .min), path: "")

    /// The row itself, in what a row says; in the stored form of a period the newest row about it.
    package static let row = FactOrigin(asOf: Instant(milliseconds: .max), path: "")

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

    /// Returns the same value, with another origin if it has the given one.
    func replacing(_ origin: FactOrigin, by other: FactOrigin) -> Fact {
        self.origin == origin ? Fact(value, origin: other) : self
    }

    /// The same fact without its place in the answer.
    var withoutPath: Fact { Fact(value, origin: FactOrigin(asOf: asOf, path: "")) }

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
        [terms.asOf, revocation.asOf, upgrade.asOf] + details.factClocks + (renewal?.clocks ?? [])
            + [details.arrival?.asOf].compactMap(\.self)
    }
}

extension RenewalFacts {
    fileprivate var clocks: [Instant] { [asOf] + factClocks + [gaveUpAt].compactMap(\.self) }
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
    package var clocks: Set<Instant> { Set([asOf, terms.asOf, revocation.asOf] + factClocks) }
}

/// A value in memory of its own, so that a copy of what holds it costs one reference. It is copied when it changes.
@propertyWrapper package struct Boxed<Value: Hashable & Sendable>: Hashable, Sendable {
    private final class Box: @unchecked Sendable {
        var value: Value

        init(_ value: Value) { self.value = value }
    }

    private var box: Box

    /// Puts a value into memory of its own.
    package init(wrappedValue: Value) { box = Box(wrappedValue) }

    /// The value.
    package var wrappedValue: Value {
        _read { yield box.value }
        _modify {
            if !isKnownUniquelyReferenced(&box) { box = Box(box.value) }
            yield &box.value
        }
    }

    /// Returns whether both hold the same or equal values.
    package static func == (left: Boxed, right: Boxed) -> Bool {
        left.box === right.box || left.box.value == right.box.value
    }

    /// Hashes the value.
    package func hash(into hasher: inout Hasher) { hasher.combine(box.value) }
}
