import Subscriptions
import Testing
import Tracking

/// `perennial grant` as a process of its own.
@Suite("`perennial grant` knows the entitlements of the catalog")
struct GrantProcessTests {
    @Test("A misspelt entitlement is refused with the nearest name, and granted with --force")
    func misspelt() async throws {
        try await PretendWorld.with(seed: 5, customers: 3, sandboxCustomers: 0, monthSeconds: 86_400) { world in
            try await world.tracker.ledger.apps.applyCatalog(
                [CatalogProduct(id: "monthly", entitlements: ["premium"])], to: world.bundleID)
            func grant(_ entitlement: String, _ flags: [String] = []) async throws -> (status: Int32, said: String) {
                let arguments = ["grant", "--app", world.bundleID.text, "--customer", "kim", "--reason", "a test"]
                let process = try PerennialProcess(arguments + ["--entitlement", entitlement] + flags, in: world)
                let status = await process.end()
                defer { try? process.forget() }
                return (status, process.said)
            }
            let refused = try await grant("premum")
            #expect(refused.status == 1 && refused.said.contains("premium") && refused.said.contains("--force"))
            #expect(try await grant("premium").status == 0)
            #expect(try await grant("premum", ["--force"]).status == 0)
            let found = try await world.tracker.ledger.customers.entitlements(app: world.bundleID, customer: "kim")
            #expect(found.map(\.name) == ["premium", "premum"] && found.allSatisfy(\.granted))
            try await world.expectNoViolations()
        }
    }
}
