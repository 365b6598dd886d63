import Postgres
import SQL
import Subscriptions
import Synchronization

/// Something that answers about rights rest on: when it changes, they may be others.
enum RightBasis: Sendable, Hashable {
    case customer(Int64)
    case subscription(Int64)
    case purchase(Int64)
}

/// What a customer may use now, with what it takes to remember that.
package final class Rights: Sendable {
    /// The answer.
    package let entitlements: [Entitlement]
    /// What it rests on; nothing where that is not known.
    let basis: [RightBasis]
    /// From when on time alone may make it another answer; nil where it never does.
    let lastsUntil: Instant?
    /// The subscription or purchase that each entitlement comes from; nil where none does.
    let sources: [RightBasis?]
    /// Whether a check, which moves clocks alone, can make another subscription or purchase the one that is told.
    let isTied: Bool
    private let words = Mutex<(any Sendable)?>(nil)

    /// Rights that rest on what is not told.
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

    /// What `tell` makes of them, made once for as long as they are remembered.
    package func told<Words: Sendable>(by tell: ([Entitlement]) -> Words) -> Words {
        words.withLock { words in
            if let words = words as? Words { return words }
            let told = tell(entitlements)
            words = told
            return told
        }
    }
}

extension Rights {
    /// The same after Apple said the same of some of what it comes from.
    func checked(_ checks: [RightCheck]) -> Rights {
        let told = zip(entitlements, sources).map { entitlement, source in
            checks.first { $0.thing == source }.map(entitlement.checked) ?? entitlement
        }
        return Rights(told, from: sources, isTied: isTied, basis: basis, lastsUntil: lastsUntil)
    }
}

extension SubscriptionLedger {
    /// What customers could use at `time` as known at `knownAt`, now where nil, in the order of `customers`.
    package func rights(of customers: [CustomerName], at time: Instant?, knownAt: Instant?) async throws -> [Rights] {
        try await entitlements(of: customers, at: time, knownAt: knownAt).map { Rights($0) }
    }

    /// What customers may use now, in the order of `customers`; a customer whom nobody knows has nothing, which rests on
    /// nothing. Always from the primary.
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
    /// A row for each right, or a single one without; all say the same of what they rest on.
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
