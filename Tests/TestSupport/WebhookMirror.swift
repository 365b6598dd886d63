import Foundation
package import Postgres
import Synchronization

/// What a message to a webhook says, as a receiver reads it.
package struct Heard: Decodable, Sendable {
    /// What a customer may use, or might.
    package struct Right: Decodable, Sendable, Hashable {
        package let entitlement: String
        package let granted: Bool
        package let until: String?
        package var product_id: String?
        package let basis: String
        package let environment: String
    }

    /// A stretch of time with access.
    package struct Stretch: Decodable, Sendable, Hashable {
        package let entitlement: String
        package let environment: String
        package let from: String?
        package let until: String?
    }

    /// A charge, a refund or a proration.
    package struct Money: Decodable, Sendable {
        package let kind: String
        package let amount_milliunits: Int64?
        package let currency: String?
    }

    /// The event.
    package struct Change: Decodable, Sendable {
        package let original_transaction_id: String?
        package let product_id: String?
        package let customer: String?
        package let kind: String
    }

    /// Everything but type and time.
    package struct Content: Decodable, Sendable {
        package let event: Change
        package let money: [Money]?
        package let customer: String?
        package let previous_customer: String?
        package let entitlements: [Right]?
        package let access: [Stretch]?
        package let position: Int64
        package let feed: String
        package let feed_since: String
    }

    package let type: String
    package let timestamp: String
    package let data: Content

    /// The stream of the event.
    package var stream: String { data.event.original_transaction_id ?? "customer \(data.customer ?? "")" }
}

/// What a receiver remembers: the messages that it took, in order, and a mirror of what customers may use.
package final class WebhookMirror: Sendable {
    private struct Memory {
        var taken: [(id: String, heard: Heard)] = []
        var rights: [String: (since: String, position: Int64, rights: [Heard.Right], access: [Heard.Stretch])] = [:]
    }

    private let memory = Mutex(Memory())

    /// Creates an empty memory.
    package init() {}

    /// Takes a message: only what is newer about its customer counts.
    package func take(_ id: String, _ heard: Heard) {
        memory.withLock { memory in
            memory.taken.append((id, heard))
            guard let customer = heard.data.customer, let rights = heard.data.entitlements,
                let access = heard.data.access
            else { return }
            if let known = memory.rights[customer],
                (known.since, known.position) >= (heard.data.feed_since, heard.data.position)
            {
                return
            }
            memory.rights[customer] = (heard.data.feed_since, heard.data.position, rights, access)
        }
    }

    /// Takes a message with nothing but what a mirror reads: a customer's access as JSON.
    package func take(position: Int64, _ customer: String, _ access: String, since: String) throws {
        let message = """
            {"type": "entitlements.changed", "timestamp": "\(since)", "data": {"event": {"kind": "entitlements.changed"},
             "customer": "\(customer)", "entitlements": [], "access": \(access), "position": \(position), "feed": "lost",
             "feed_since": "\(since)"}}
            """
        take("lost \(position)", try JSONDecoder().decode(Heard.self, from: Data(message.utf8)))
    }

    /// Forgets the customers about whom nothing came under the newest feed.
    package func dropUnconfirmed() {
        memory.withLock { memory in
            let newest = memory.rights.values.map(\.since).max()
            memory.rights = memory.rights.filter { $0.value.since == newest }
        }
    }

    /// The messages in the order in which they came.
    package var taken: [(id: String, heard: Heard)] { memory.withLock { $0.taken } }

    /// Their positions.
    package var positions: [Int64] { taken.map(\.heard.data.position) }

    /// What customers may use.
    package var rights: [String: [Heard.Right]] { memory.withLock { $0.rights.mapValues(\.rights) } }

    /// The first deliveries that came after a later event of their stream.
    package var disorder: [String] {
        var last: [String: Int64] = [:]
        var seen: Set<Int64> = []
        return taken.map(\.heard).filter { seen.insert($0.data.position).inserted }.compactMap { heard in
            defer { last[heard.stream] = max(last[heard.stream] ?? 0, heard.data.position) }
            guard let before = last[heard.stream], before > heard.data.position else { return nil }
            return "\(heard.stream): \(heard.data.position) after \(before)"
        }
    }

    /// The customers about whom the mirror and `perennial.entitlement_now` differ, but for `except`.
    package func differences(from database: Database, except: Set<String> = []) async throws -> [String] {
        let rows = try await database.query(
            Statement(
                name: "entitlements to mirror",
                sql: """
                    SELECT customer, entitlement, granted, ledger.iso8601(until) AS until, basis, environment,
                           CASE WHEN granted THEN product_id END AS product_id
                    FROM perennial.entitlement_now
                    """))
        var now: [String: Set<Heard.Right>] = [:]
        for row in rows {
            now[try row.text("customer"), default: []].insert(
                Heard.Right(
                    entitlement: try row.text("entitlement"), granted: try row.bool("granted"),
                    until: try row.textIfPresent("until"), product_id: try row.textIfPresent("product_id"),
                    basis: try row.text("basis"), environment: try row.text("environment")))
        }
        // Of several that do not grant, the one that was asked about last is named, and messages do not know which.
        let mirror = rights.mapValues { rights in
            Set(
                rights.map { right in
                    var right = right
                    if !right.granted { right.product_id = nil }
                    return right
                })
        }
        return Set(now.keys).union(mirror.keys).subtracting(except).sorted().compactMap { customer in
            let (real, seen) = (now[customer] ?? [], mirror[customer] ?? [])
            return real == seen ? nil : "\(customer) has \(real), and the mirror \(seen)"
        }
    }

    /// What customers may use at an instant by the clock alone, each as `customer entitlement`.
    package func granted(at now: String) -> Set<String> {
        // Instants of one form compare as text.
        memory.withLock { memory in
            Set(
                memory.rights.flatMap { customer, known in
                    known.access.filter { ($0.from ?? now) <= now && ($0.until ?? "a") > now }
                        .map { "\(customer) \($0.entitlement)" }
                })
        }
    }

    /// The access about which the mirror by the clock and `perennial.entitlement_now` differ at this moment.
    package func differencesByClock(from database: Database) async throws -> [String] {
        let rows = try await database.query(
            Statement(
                name: "access to mirror",
                sql: """
                    SELECT ledger.iso8601(now()) AS now, e.customer || ' ' || e.entitlement AS granted
                    FROM (SELECT) one LEFT JOIN perennial.entitlement_now e ON e.granted
                    """))
        let real = Set(try rows.compactMap { try $0.textIfPresent("granted") })
        return try granted(at: rows[0].text("now")).symmetricDifference(real).sorted()
    }
}
