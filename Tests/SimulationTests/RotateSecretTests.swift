import AppStoreSimulator
import Foundation
import Subscriptions
import Testing
import Tracking

/// `perennial app rotate-secret` as a process of its own, on a pretend store.
@Suite("`perennial app rotate-secret` tries a new secret first")
struct RotateSecretTests {
    private static let (right, wrong) = (String(repeating: "a", count: 32), String(repeating: "b", count: 32))

    /// Rotates to a secret; how it ended, and what it said.
    private func rotate(
        to secret: String, in world: PretendWorld, _ flags: [String] = [], further: [String: String] = [:]
    ) async throws -> (status: Int32, said: String) {
        let file = FileManager.default.temporaryDirectory.appending(path: "secret-\(UUID())")
        try Data("\(secret)\n".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let arguments = ["app", "rotate-secret", world.bundleID.text, "--shared-secret-file", file.path]
        let process = try PerennialProcess(arguments + flags, in: world, further: further)
        let status = await process.end()
        let said = process.said
        try process.forget()
        #expect(!said.contains(secret))
        return (status, said)
    }

    @Test("A new secret is tried on a stored receipt; one that Apple refuses is not put in place")
    func tried() async throws {
        try await PretendWorld.with(seed: 3, customers: 10, sandboxCustomers: 0, monthSeconds: 86_400) { world in
            func stored() async throws -> [String?] {
                let secrets = try world.tracker.ledger.apps.secrets(
                    of: try await world.tracker.ledger.apps.app(world.bundleID))
                return [secrets.current, secrets.previous]
            }
            let first = world.simulator.sharedSecret
            var ended = try await rotate(to: first, in: world)
            #expect(ended.status == 0 && ended.said.contains("No stored receipt holds a subscription"), "\(ended)")
            try await world.checkEverything()

            ended = try await rotate(to: Self.wrong, in: world)
            #expect(ended.status == 1 && ended.said.contains("21004") && ended.said.contains("--force"), "\(ended)")
            #expect(ended.said.split(separator: "\n").count == 1)
            #expect(try await stored() == [first, first])

            world.simulator.rotateSecret(to: Self.right)
            ended = try await rotate(to: Self.right, in: world)
            #expect(ended.status == 0 && ended.said.contains("Apple accepts it (receipt "), "\(ended)")
            #expect(try await stored() == [Self.right, first])

            ended = try await rotate(to: Self.wrong, in: world, ["--force"])
            #expect(ended.status == 0 && ended.said.contains("Apple refuses it (21004"), "\(ended)")
            #expect(try await stored() == [Self.wrong, Self.right])

            ended = try await rotate(
                to: Self.right, in: world, further: ["PERENNIAL_APPSTORE_URL": "http://127.0.0.1:1/"])
            #expect(ended.status == 0, "\(ended)")
            #expect(ended.said.contains("is not known: The store could not be reached."), "\(ended)")
            #expect(try await stored() == [Self.right, Self.wrong])
        }
    }
}
