import Postgres
import Subscriptions
import Testing

@testable import Tracking

@Suite("Each role does its part of promotional offers")
struct OfferRoleTests {
    /// A ledger on connections that act as a role.
    private func acting(
        as role: String, on test: TestLedger, _ body: (SubscriptionLedger) async throws -> Void
    ) async throws {
        let database = Database(
            DatabaseConfiguration(connectionString: test.connectionString + " options='-c role=\(role)'")
        ) { print("as \(role): \($0)") }
        let ledger = SubscriptionLedger(database: database, seal: try SecretSeal(masterKey: TestLedger.seal))
        do {
            try await body(ledger)
            await database.close()
        } catch {
            await database.close()
            throw error
        }
    }

    @Test(
        "Worker and server ask with an app's server key, and change neither it nor the chains of signed texts",
        arguments: ["perennial_worker", "perennial_api"])
    func serverKey(role: String) async throws {
        try await withNewLedger { test in
            try await test.ledger.operations.grantRoles()
            let app = test.app.bundleID
            try await acting(as: "perennial_owner", on: test) { ledger in
                try await ledger.apps.storeServerKey(
                    try ConnectKey(pem: OfferKeyTests.pem, id: "K", issuer: "I"), of: app)
            }
            try await acting(as: role, on: test) { ledger in
                let app = try await ledger.apps.app(app)
                #expect(try ledger.apps.serverKey(of: app)?.name.id == "K")
                #expect(try await ledger.claims.takeCall(.transactions, of: app, in: .production) == nil)
                try await ledger.claims.pauseCalls(.transactions, of: app, in: .production, seconds: 1)
                #expect(try await ledger.chainNumbers(of: ["header"]).count == 1)
                for change in ["UPDATE ledger.server_key SET key_id = 'mine'", "DELETE FROM ledger.signer_chain"] {
                    await #expect(throws: DatabaseError.self) {
                        try await ledger.database.transaction { try $0.script(change) }
                    }
                }
            }
        }
    }

    @Test("The owner stores and removes a key, the server signs with it, the worker reads its name")
    func offers() async throws {
        try await withNewLedger { test in
            try await test.ledger.operations.grantRoles()
            let app = test.app.bundleID
            try await acting(as: "perennial_owner", on: test) { ledger in
                var product = CatalogProduct(id: "monthly", kind: .autoRenewable, group: "group", entitlements: [])
                product.offers = [PromotionalOffer(id: "stay", audience: [.current])]
                try await ledger.apps.applyCatalog([product], to: app)
                try await ledger.apps.storeOfferKey(try ConnectKey(pem: OfferKeyTests.pem, id: "K"), of: app)
                try await ledger.apps.storeServerKey(
                    try ConnectKey(pem: OfferKeyTests.pem, id: "S", issuer: "I"), of: app)
            }
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            for (role, secrets) in [("perennial_worker", 1), ("perennial_api", 2), ("perennial_owner", 2)] {
                try await acting(as: role, on: test) { ledger in
                    let (count, unreadable) = try await ledger.operations.examineSecrets()
                    #expect(count == secrets && unreadable.isEmpty, "\(role): \(count), \(unreadable)")
                }
            }
            try await acting(as: "perennial_api", on: test) { ledger in
                #expect(try await ledger.offers.products(for: "ann", on: "d", of: app).count == 1)
                let answer = try await ledger.offers.sign(
                    "stay", of: "monthly", for: "ann", as: .classic, app: app)
                guard case .signed = answer else {
                    Issue.record("The offer was refused: \(answer)")
                    return
                }
            }
            try await acting(as: "perennial_worker", on: test) { ledger in
                let named = try await ledger.apps.app(app).offerKey
                #expect(named?.id == "K")
                await #expect(throws: DatabaseError.self) { _ = try await ledger.apps.offerKey(of: app) }
            }
            try await acting(as: "perennial_owner", on: test) { ledger in
                try await ledger.apps.removeOfferKey(of: app)
            }
            #expect(try await test.appNow().offerKey == nil)
        }
    }
}
