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
public final class Rights: Sendable {
    /// The answer.
    public let entitlements: [Entitlement]
    /// What it rests on; nothing where that is not known.
    let basis: [RightBasis]
    /// From when on time alone may make it another answer; nil where it never does.
    let lastsUntil: Instant?
    private let words = Mutex<(any Sendable)?>(nil)

    /// Rights that rest on what is not told.
    init(_ entitlements: [Entitlement], basis: [RightBasis] = [], lastsUntil: Instant? = nil) {
        self.entitlements = entitlements
        self.basis = basis
        self.lastsUntil = lastsUntil
    }

    /// What `tell` makes of them, made once for as long as they are remembered.
    public func told<Words: Sendable>(by tell: ([Entitlement]) -> Words) -> Words {
        words.withLock { words in
            if let words = words as? Words { return words }
            let told = tell(entitlements)
            words = told
            return told
        }
    }
}

extension SubscriptionLedger {
    /// What customers could use at `time` as known at `knownAt`, now where nil, in the order of `customers`.
    public func rights(of customers: [CustomerName], at time: Instant?, knownAt: Instant?) async throws -> [Rights] {
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

extension Rights {
    /// A row for each right, or a single one without; all say the same of what they rest on.
    fileprivate convenience init(rows: [Row]) throws {
        let entitled = try rows.filter { try $0.textIfPresent("entitlement") != nil }
        self.init(
            try entitled.map(Entitlement.init(row:)), basis: try rows.first.map(RightBasis.all) ?? [],
            lastsUntil: try rows.first?.instantIfPresent("lasts_until"))
    }
}
