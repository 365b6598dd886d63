@testable import AppStoreSimulator

extension Simulator {
    /// Runs the store on a free port while `body` talks to it; ends when the server has stopped.
    func serving(_ body: @escaping @Sendable (Int) async throws -> Void) async throws {
        let (ports, found) = AsyncStream.makeStream(of: Int.self)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { found.finish() }
                try await self.run { port in found.yield(port) }
            }
            for await port in ports {
                try await body(port)
                group.cancelAll()
                break
            }
            try await group.waitForAll()
        }
    }
}
