import Subscriptions
import TestSupport
import Testing
import Tracking

@Suite("`perennial rebuild` refuses what there is not")
struct RebuildProcessTests {
    @Test(
        "An unknown customer is status 1, as for `customer show`",
        arguments: [["rebuild", "--verify"], ["customer", "show"]])
    func unknownCustomer(command: [String]) async throws {
        try await withMigratedDatabase { database, connectionString in
            let ledger = SubscriptionLedger(database: database, seal: try SecretSeal(masterKey: PretendWorld.masterKey))
            try await ledger.apps.add("com.example.app", secret: "secret", callsPerSecond: 0)
            let process = try PerennialProcess(
                command + ["--app", "com.example.app", "--customer", "nope"],
                environment: ["DATABASE_URL": connectionString])
            #expect(await process.end() == 1)
            #expect(process.said == "perennial: com.example.app has no customer nope.\n")
            try process.forget()
        }
    }
}
