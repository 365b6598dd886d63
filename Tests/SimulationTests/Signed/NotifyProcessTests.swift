import AppStoreSimulator
import Foundation
import Testing

@Suite("The simulator as a process notifies, and its notifications are believed by those who trust its root")
struct NotifyProcessTests {
    @Test("A notification of a new customer is tried at the address, and verifies", .timeLimit(.minutes(2)))
    func notify() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "notify-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (root, text) = (folder.appending(path: "root.pem"), folder.appending(path: "body"))
        // Nothing listens on port 1, so each attempt fails.
        let simulator = try PerennialProcess(
            [
                "simulator", "--port", "0", "--customers", "0", "--sandbox-customers", "0", "--month-seconds", "60",
                "--signing-root-file", root.path, "--notify", "http://127.0.0.1:1/notifications",
            ], environment: [:])
        let store = try #require(try await simulator.address(), "\(simulator.said)")
        try await HTTPCalls.send("\(store)/simulator/customers", ["kind": "loyal"])
        var made: [NotificationTruth] = []
        while made.first?.attempts.isEmpty ?? true {
            made = try await HTTPCalls.send(
                "\(store)/simulator/notifications?payloads=true", reading: [NotificationTruth].self)
        }
        let first = try #require(made.first)
        #expect(first.type == "SUBSCRIBED" && first.subtype == "INITIAL_BUY" && first.customer == "c000000")
        #expect(first.attempts[0].result == "SOCKET_ISSUE")
        try Data((first.signedPayload ?? "").utf8).write(to: text)
        let explain = try PerennialProcess(
            ["explain", "--signed", text.path],
            environment: [
                "PERENNIAL_APPSTORE_ROOT_FILE": root.path, "PERENNIAL_APPSTORE_URL": "\(store)/verifyReceipt",
                "PERENNIAL_APPSTORE_SANDBOX_URL": "\(store)/sandbox/verifyReceipt",
                "PERENNIAL_APPSTORE_SERVER_URL": store, "PERENNIAL_APPSTORE_SERVER_SANDBOX_URL": "\(store)/sandbox",
            ])
        #expect(await explain.end() == 0)
        #expect(explain.said.contains("data.signedTransactionInfo: verified"), "\(explain.said)")
        #expect(explain.said.contains("data.signedRenewalInfo: verified") && explain.said.contains("status = 1"))
        try explain.forget()
        #expect(await simulator.stop() == 0)
        try simulator.forget()
    }

    @Test("An address that cannot be used is refused before the simulator starts")
    func refused() async throws {
        let simulator = try PerennialProcess(
            ["simulator", "--port", "0", "--notify", "https://localhost/x"], environment: [:])
        #expect(await simulator.end() == 64)
        #expect(simulator.said.contains("--notify: url is an address such as http://localhost:8080/path."))
        try simulator.forget()
    }
}
