import Foundation
import Postgres

/// The shop's service as a consumer of deliveries: it reads the queue after its cursor, stores each delivery with its
/// credit in one transaction, acknowledges, and then moves its cursor. It remembers only what its database has.
struct ShopConsumer {
    static let tables = """
        CREATE TABLE given (
            delivery_id text PRIMARY KEY, customer text NOT NULL, transaction_id text NOT NULL, turn int NOT NULL,
            product_id text NOT NULL, units bigint);
        CREATE TABLE account (customer text PRIMARY KEY, units bigint NOT NULL);
        CREATE TABLE cursor (position bigint NOT NULL);
        INSERT INTO cursor VALUES (0);
        """

    private struct Page: Decodable, Sendable {
        let deliveries: [Delivery]
        let next: Int64
    }

    let world: ShopWorld

    /// Works until its task is cancelled; begins again after each death and each trouble.
    func run() async {
        while !Task.isCancelled {
            do {
                try await work()
            } catch is Kills.ClientDied {
                continue
            } catch {
                try? await Task.sleep(for: .milliseconds(100))
            }
        }
    }

    private func work() async throws {
        let read = Statement(name: "read_cursor", sql: "SELECT position FROM cursor")
        var after = try await world.shop.query(read).first?.int8("position") ?? 0
        while !Task.isCancelled {
            let page = try await HTTPCalls.send(
                await world.api("deliveries?state=due&after=\(after)&wait=1"), headers: world.keyHeader,
                reading: Page.self)
            for delivery in page.deliveries {
                try await world.kills.at(.read, of: [delivery.customer]) {}
                try await world.kills.at(.store, of: [delivery.customer]) { try await store(delivery) }
            }
            if !page.deliveries.isEmpty { try await acknowledge(page.deliveries) }
            let next = page.next
            try await world.shop.transaction { transaction in
                _ = try transaction.execute(
                    Statement(name: "move_cursor", sql: "UPDATE cursor SET position = $1::bigint"), [.int8(next)])
            }
            after = next
        }
    }

    /// One transaction: a delivery that is there already adds nothing to the account.
    private func store(_ delivery: Delivery) async throws {
        try await world.shop.transaction { transaction in
            _ = try transaction.execute(
                Statement(
                    name: "give",
                    sql: """
                        WITH added AS (
                            INSERT INTO given VALUES ($1::text, $2::text, $3::text, $4::bigint, $5::text, $6::bigint)
                            ON CONFLICT DO NOTHING RETURNING customer, CASE turn % 2 WHEN 1 THEN units ELSE -units END AS units)
                        INSERT INTO account SELECT customer, units FROM added WHERE units IS NOT NULL
                        ON CONFLICT (customer) DO UPDATE SET units = account.units + EXCLUDED.units
                        """),
                [
                    .text(delivery.delivery_id), .text(delivery.customer), .text(delivery.transaction_id),
                    .int8(Int64(delivery.turn)), .text(delivery.product_id), .int8(delivery.units),
                ])
        }
    }

    private func acknowledge(_ deliveries: [Delivery]) async throws {
        let gives = deliveries.filter { $0.turn % 2 == 1 }.map(\.customer)
        let takesBack = deliveries.filter { $0.turn % 2 == 0 }.map(\.customer)
        let ids = deliveries.map(\.delivery_id)
        try await world.kills.at(.acknowledge, of: gives) {
            try await world.kills.at(.takeBack, of: takesBack) {
                let path = ids.count == 1 ? "deliveries/\(ids[0]):ack" : "deliveries:ack"
                try await HTTPCalls.send(
                    await world.api(path), ids.count == 1 ? [:] : ["ids": ids], headers: world.keyHeader)
            }
        }
    }
}

/// A delivery as the API shows it.
struct Delivery: Decodable, Sendable {
    let delivery_id, customer, product_id, transaction_id, state: String
    let turn: Int
    let units: Int64?
}
