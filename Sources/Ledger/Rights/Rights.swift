import Postgres
import SQL
package import Subscriptions
import Synchronization

/// A thing that answers about entitlements depend on; when it changes, the entitlements may change.
enum RightBasis: Sendable, Hashable {
    case customer(Int64)
    case subscription(Int64)
    case purchase(Int64)
}

/// A customer's entitlements now, with the facts that are necessary to keep them in memory.
package final class Rights: Sendable {
    /// The answer.
    package let entitlements: [Entitlement]
    /// The things it depends on; empty where they are not known.
    let basis: [RightBasis]
    /// The instant from which time alone may change the answer; nil where time never does.
    let lastsUntil: Instant?
    /// The subscription or purchase that each entitlement comes from; nil where none does.
    let sources: [RightBasis?]
    /// Whether a check, which changes clocks alone, can make the answer name another subscription or purchase.
    let isTied: Bool
    private let words = Mutex<(any Sendable)?>(nil)

    /// Creates entitlements; without a basis they depend on unknown things.
    init(
        _ entitlements: [Entitlement], from sources: [RightBasis?] = [], isTied: Bool = true, basis: [RightBasis] = [],
        lastsUntil: Instant? = nil
    ) {
        self.entitlements = entitlements
        self.sources = sources
        self.isTied = isTied
        self.basis = basis
        self.lastsUntil = lastsUntil
    }

    /// Returns the result of `render` for the entitlements, computed once for as long as they are in memory.
    package func rendered<Words: Sendable>(by render: ([Entitlement]) -> Words) -> Words {
        words.withLock { words in
            if let words = words as? Words { return words }
            let rendered = render(entitlements)
            words = rendered
            return rendered
        }
    }
}

extension Rights {
    /// Returns the same entitlements after Apple confirmed some of their sources.
    func checked(_ checks: [RightCheck]) -> Rights {
        let checked = zip(entitlements, sources).map { entitlement, source in
            checks.first { $0.thing == source }.map(entitlement.checked) ?? entitlement
        }
        return Rights(checked, from: sources, isTied: isTied, basis: basis, lastsUntil: lastsUntil)
    }
}

extension LedgerCustomers {
    /// Returns the entitlements of customers at `time` as known at `knownAt`, now where nil, in the order of
    /// `customers`.
    package func rights(of customers: [CustomerName], at time: Instant?, knownAt: Instant?) async throws -> [Rights] {
        try await entitlements(of: customers, at: time, knownAt: knownAt).map { Rights($0) }
    }

    /// Returns the entitlements of customers now, in the order of `customers`; an unknown customer has none, which
    /// depends on nothing. Always reads from the primary.
    func rights(of customers: [CustomerName]) async throws -> [Rights] {
        let rows = try await query(
            Queries.rights, [.texts(customers.map(\.bundleID.text)), .texts(customers.map(\.id.text))])
        var found = [[Row]](repeating: [], count: customers.count)
        for row in rows { found[Int(try row.int8("place")) - 1].append(row) }
        return try found.map(Rights.init(rows:))
    }
}

extension RightBasis {
    /// What a right comes from.
    fileprivate static func source(of row: Row) throws -> RightBasis? {
        if let subscription = try row.int8IfPresent("subscription_id") { return .subscription(subscription) }
        return try row.int8IfPresent("purchase_id").map { .purchase($0) }
    }
}

extension Rights {
    /// Reads a row for each entitlement, or a single row without one; all rows show the same basis.
    fileprivate convenience init(rows: [Row]) throws {
        let entitled = try rows.filter { try $0.textIfPresent("entitlement") != nil }
        self.init(
            try entitled.map(Entitlement.init(row:)),
            from: try entitled.map(RightBasis.source),
            isTied: try entitled.contains { try $0.bool("is_tied") },
            basis: Array(Set(try rows.first.map(RightBasis.all) ?? [])),
            lastsUntil: try rows.first?.instantIfPresent("lasts_until"))
    }
}
