import Synchronization
package import Testing

/// A world that the tests of one suite share, such as a database with rows in it: made when the first of them asks for
/// it, and gone when all of them have ended. To make one takes longer than most tests.
///
/// It is for tests that only read, and for those that write only rows that the others do not see, such as those of a
/// customer or an app of their own. It is a trait: a suite names it, and only that suite's tests may use it.
package final class OncePerSuite<World: Sendable>: SuiteTrait, TestScoping {
    private let make: Making
    /// Nil while the suite does not run.
    private let run = Mutex<Lent<World>?>(nil)

    /// Makes a world, lends it, and takes it away when the borrower returns.
    package typealias Making = @Sendable (_ lend: @escaping @Sendable (World) async throws -> Void) async throws -> Void

    /// Makes nothing yet.
    package init(_ make: @escaping Making) { self.make = make }

    /// Runs `body` with the suite's world.
    package func use<R>(_ body: (World) async throws -> R) async throws -> R {
        guard let run = run.withLock({ $0 }) else {
            throw TestSupportError("The tests of a suite share a world only if its @Suite names that world.")
        }
        return try await body(try await run.world())
    }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let run = Lent(make)
        self.run.withLock { $0 = run }
        defer { self.run.withLock { $0 = nil } }
        do {
            try await function()
        } catch {
            try await run.end()
            throw error
        }
        try await run.end()
    }
}

/// A world that is made when it is first asked for, and kept until `end`.
actor Lent<World: Sendable> {
    private let make: OncePerSuite<World>.Making
    private var making: Task<World, any Error>?
    private var lending: Task<Void, any Error>?
    private let (untilTheEnd, ending) = AsyncStream<Never>.makeStream()

    init(_ make: @escaping OncePerSuite<World>.Making) { self.make = make }

    func world() async throws -> World {
        if let making { return try await making.value }
        let (worlds, made) = AsyncThrowingStream<World, any Error>.makeStream()
        lending = Task { [make, untilTheEnd] in
            do {
                try await make { world in
                    made.yield(world)
                    for await _ in untilTheEnd {}
                }
                made.finish()
            } catch {
                made.finish(throwing: error)
                throw error
            }
        }
        let making = Task {
            for try await world in worlds { return world }
            throw TestSupportError("The suite's world ended before it was lent.")
        }
        self.making = making
        return try await making.value
    }

    /// Returns when the world is gone.
    func end() async throws {
        ending.finish()
        try await lending?.value
    }
}
