import Foundation
import Subscriptions
import TestSupport
import Testing

/// The app of the probe as a process of its own, and the folder of its device.
struct ProbeProcess {
    /// Buys the same things on the same folder each time it is started.
    let environment: [String: String]
    /// What the device keeps.
    let folder: URL

    /// - Parameters:
    ///   - customer: The simulator's name of the customer.
    ///   - address: Where the server is.
    ///   - secret: A key of scope `write`.
    ///   - isDevice: Whether receipts go by the route for devices.
    init(
        buying purchases: Int, as customer: String, in world: PretendWorld, at address: String, _ secret: String,
        isDevice: Bool
    ) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "probe-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        environment = [
            "PROBE_SERVER": address, "PROBE_KEY": secret, "PROBE_SIMULATOR": "http://127.0.0.1:\(world.port)",
            "PROBE_APP": world.bundleID.text, "PROBE_CUSTOMER": customer, "PROBE_FOLDER": folder.path,
            "PROBE_PURCHASES": "\(purchases)", "PROBE_ROUTE": isDevice ? "device" : "service",
            "no_proxy": "127.0.0.1",
        ]
    }

    /// Starts it and waits for its end; answers what it said.
    /// - Parameter step: The step at which it kills itself; 0 is none.
    func run(killedAt step: Int = 0) async throws -> String {
        let process = Process()
        process.executableURL = PretendWorld.productsFolder.appending(path: "PerennialClientProbe")
        process.environment = environment.merging(["PROBE_KILL_AT": "\(step)"]) { _, new in new }
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let said = await output.fileHandleForReading.textToEnd()
        let status = await process.ended()
        let isKilled = process.terminationReason == .uncaughtSignal && status == SIGKILL
        #expect(isKilled ? said.contains("killed at step \(step)") : status == 0, "status \(status): \(said)")
        return said
    }

    /// Runs it until it ends by itself; answers how many steps that took.
    func runToTheEnd() async throws -> Int {
        let said = try await run()
        return try #require(said.firstMatch(of: /done after ([0-9]+) steps/).flatMap { Int($0.1) }, "\(said)")
    }

    /// The transactions that the app finished.
    func finished() throws -> Set<String> {
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        return Set(files.filter { $0.hasPrefix("finished-") }.map { String($0.dropFirst("finished-".count)) })
    }

    /// The files of the queue that are left.
    func queued() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "uploads").path)
    }

    /// Removes the folder.
    func forget() throws { try FileManager.default.removeItem(at: folder) }
}
