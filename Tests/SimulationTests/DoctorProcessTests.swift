import AppStoreSimulator
import AsyncHTTPClient
import Foundation
import NIOCore
import Postgres
import Subscriptions
import TestSupport
import Testing
import Tracking

/// `perennial doctor` as a process of its own, on a pretend store.
@Suite("`perennial doctor` says what is wrong and what to do")
struct DoctorProcessTests {
    private func examine(
        _ world: PretendWorld, _ arguments: [String] = [], _ further: [String: String] = [:], limit: String? = nil
    ) async throws -> (status: Int32, said: String) {
        let process = try PerennialProcess(["doctor"] + arguments, in: world, further: further, limit: limit)
        let status = await process.end()
        let said = process.said
        try process.forget()
        return (status, said)
    }

    @Test("What is wrong is one line each, and the status is 2; a healthy installation is 0", .timeLimit(.minutes(2)))
    func findings() async throws {
        try await PretendWorld.with(seed: 11, customers: 2, sandboxCustomers: 0, monthSeconds: 86_400) { world in
            var found = try await examine(world)
            #expect(found.status == 0 && found.said.contains("Nothing is wrong ("), "\(found)")
            #expect(found.said.contains("the master key opens 2 sealed secrets"), "\(found)")
            #expect(!found.said.contains(world.simulator.sharedSecret))

            var coins = CatalogProduct(
                id: ProductID("\(world.bundleID).coins"), kind: .consumable, entitlements: [])
            coins.credit = CatalogProduct.Credit(name: "gold", units: 100)
            try await world.tracker.ledger.apps.applyCatalog([coins], to: world.bundleID)
            _ = try await world.tracker.ledger.orders.place(
                OrderRequest(customer: "kim", productID: ProductID("\(world.bundleID).coins")), of: world.bundleID,
                requestKey: "one")
            let otherKey = Data(repeating: 9, count: 32).base64EncodedString()
            found = try await examine(world, [], ["PERENNIAL_MASTER_KEY": otherKey])
            #expect(found.status == 2 && found.said.contains("or run `perennial app rotate-secret`"), "\(found)")
            let orders =
                "keys of orders of \(world.bundleID) do not open with this master key; set the key that they were"
            #expect(found.said.contains(orders), "\(found)")
            let process = try PerennialProcess(
                ["worker", "--once"], in: world, further: ["PERENNIAL_MASTER_KEY": otherKey])
            _ = await process.end()
            #expect(process.said.contains("does not open with this master key; set the key"), "\(process.said)")
            try process.forget()

            found = try await examine(world, [], ["PERENNIAL_APPSTORE_URL": "http://127.0.0.1:1/verifyReceipt"])
            #expect(found.status == 2 && found.said.contains("http://127.0.0.1:1/verifyReceipt: The store could not"))
            #expect(found.said.contains("Check the address, and this machine's network, name servers"), "\(found)")
            found = try await examine(world, [], ["PERENNIAL_APPSTORE_URL": "http://127.0.0.1:\(world.port)/simulator"])
            #expect(found.status == 2, "\(found)")

            let nowhere = "http://127.0.0.1:\(world.port)/nowhere"
            found = try await examine(world, [], ["PERENNIAL_APPSTORE_SERVER_URL": nowhere])
            #expect(found.status == 2 && found.said.contains("\(nowhere): The store answered HTTP 404"), "\(found)")

            found = try await examine(world, [], ["PERENNIAL_LAESE_SECONDS": "9"])
            #expect(found.status == 2 && found.said.contains("did you mean PERENNIAL_LEASE_SECONDS?"), "\(found)")
            found = try await examine(world, [], [:], limit: "-n 200")
            #expect(found.status == 2 && found.said.contains("LimitNOFILE"), "\(found)")
            found = try await examine(world, [], ["DATABASE_URL": "host=/nonexistent dbname=perennial"])
            #expect(found.status == 2 && found.said.contains("WRONG  database"), "\(found)")
            found = try await examine(world, [], ["PERENNIAL_MASTER_KEY": ""])
            #expect(
                found.said.contains("Set the key with which the secrets here were sealed; with a new one"), "\(found)")
            found = try await examine(world, [], ["PERENNIAL_LEASE_SECONDS": "soon"])
            #expect(found.status == 78, "\(found)")
        }
    }

    @Test("With the role that the documents name nothing is wrong and nothing refused", .timeLimit(.minutes(2)))
    func accounts() async throws {
        try await PretendWorld.with(seed: 14, customers: 2, sandboxCustomers: 0, monthSeconds: 86_400) { world in
            try await world.tracker.ledger.operations.grantRoles()
            for role in ["perennial_worker", "perennial_api"] {
                let named = ["DATABASE_URL": "\(world.connectionString) options='-c role=\(role)'"]
                let found = try await examine(world, [], named)
                #expect(found.status == 0 && found.said.contains("\(role) has the rights of"), "\(found)")
                let process = try PerennialProcess(["worker", "--once"], in: world, further: named)
                let status = await process.end()
                #expect(status == 0 && !process.said.contains("permission denied"), "\(process.said)")
                try process.forget()
            }
            let database = Database(DatabaseConfiguration(connectionString: world.connectionString)) { print($0) }
            let asServer = ["DATABASE_URL": "\(world.connectionString) options='-c role=perennial_api'"]
            for right in [
                "update (taken_up) on ledger.server_key", "select on ledger.api_key", "usage on schema ledger",
            ] {
                try await database.transaction { try $0.script("REVOKE \(right) FROM perennial_api") }
                let found = try await examine(world, [], asServer)
                let lack = "perennial_api is a member of perennial_api and lacks "
                #expect(found.status == 2 && found.said.contains("WRONG  rights          \(lack)"), "\(found)")
                #expect(found.said.contains(right) && found.said.contains("run `perennial migrate`"), "\(found)")
            }
            await database.close()
        }
    }

    @Test("Problems and pages of a server advise what its operator runs", .timeLimit(.minutes(1)))
    func advice() async throws {
        try await PretendWorld.with(seed: 13, customers: 2, sandboxCustomers: 0, monthSeconds: 86_400) { world in
            let server = try PerennialProcess(["serve"], in: world, further: ["PERENNIAL_COMMAND": "sudo perennialctl"])
            let address = try #require(try await server.address(), "\(server.said)")
            for path in ["/v1/apps/a/customers/c/entitlements", "/admin/sign-in"] {
                let response = try await HTTPClient.shared.execute(
                    HTTPClientRequest(url: address + path), timeout: .seconds(10))
                let body = String(buffer: try await response.body.collect(upTo: 1 << 20))
                #expect(body.contains("sudo perennialctl key create"), "\(body)")
            }
            #expect(await server.stop() == 0)
            try server.forget()
        }
    }

    @Test("An empty database is told to be migrated; nothing is created in it", .timeLimit(.minutes(1)))
    func emptyDatabase() async throws {
        try await PretendWorld.with(seed: 12, customers: 2, sandboxCustomers: 0, monthSeconds: 86_400) { world in
            try await withTestDatabase { database, connectionString in
                let named = ["DATABASE_URL": connectionString]
                let wrapped = named.merging(["PERENNIAL_COMMAND": "sudo perennialctl"]) { $1 }
                let advised = try await examine(world, [], wrapped)
                #expect(advised.said.contains("run `sudo perennialctl migrate` first"), "\(advised)")
                #expect(advised.said.contains("ok     settings"), "\(advised)")
                let found = try await examine(world, ["--format", "json"], named)
                #expect(found.status == 2, "\(found)")
                let json = try #require(
                    try JSONSerialization.jsonObject(with: Data(found.said.utf8)) as? [String: Any], "\(found)")
                #expect(json["wrong"] as? Int == 1)
                let checks = try #require(json["checks"] as? [[String: Any]])
                let schema = try #require(checks.first { $0["check"] as? String == "schema" })
                #expect((schema["detail"] as? String)?.contains("run `perennial migrate`") == true)
                let schemas = try await database.query(
                    .init(name: "schemas", sql: "SELECT FROM pg_namespace WHERE nspname IN ('ledger', 'perennial')"))
                #expect(schemas.isEmpty)
            }
            try await withTestDatabase(encoding: "SQL_ASCII") { _, connectionString in
                let found = try await examine(world, [], ["DATABASE_URL": connectionString])
                #expect(found.status == 2 && found.said.contains("WRONG  encoding"), "\(found)")
                #expect(found.said.contains("createdb --owner USER --encoding UTF8 --template template0"), "\(found)")
            }
        }
    }
}
