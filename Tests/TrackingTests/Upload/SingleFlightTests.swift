import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// Who wants a check that is under way gets what it comes to, or a check of their own, or goes.
@Suite("Checks under way are shared") struct SingleFlightTests {
    private static let receipt = ReceiptID(1)
    private static let settled = Settled(
        receiptID: receipt, outcome: .verified, reason: nil, refusal: nil, retry: .vain, vouching: .vouched,
        orderIDs: [],
        subscriptions: [], purchaseEvents: [],
        nextCheckAt: nil)

    /// Longer than any test may take.
    private static let forever = Duration.seconds(600)

    private func want(
        _ checks: SingleFlight, within time: Duration = forever, check: () async throws -> Void
    ) async throws -> Settled {
        try await checks.outcome(of: Self.receipt, until: .now + time, isEnough: { _ in true }) {
            try await check()
            return Self.settled
        }
    }

    /// Waits until so many stand in line.
    private func line(of count: Int, at checks: SingleFlight) async throws {
        while checks.waiting(for: Self.receipt) != count { try await Task.sleep(for: .milliseconds(1)) }
    }

    /// Runs `body` while another caller checks; cancels that caller afterwards.
    private func whileChecking(
        _ checks: SingleFlight, _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        let (begun, begin) = AsyncStream<Void>.makeStream()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                await #expect(throws: CancellationError.self) {
                    _ = try await want(checks) {
                        begin.finish()
                        try await Task.sleep(for: Self.forever)
                    }
                }
            }
            for await _ in begun {}
            try await body()
            group.cancelAll()
            try await group.waitForAll()
        }
    }

    @Test("A cancelled caller hands over to the next")
    func whoeverIsCancelledHandsOverToTheNext() async throws {
        let checks = SingleFlight()
        let (calls, more) = (CallCount(), AsyncStream<Void>.makeStream())
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await whileChecking(checks) {
                    more.continuation.finish()
                    try await line(of: 3, at: checks)
                }
            }
            for await _ in more.stream {}
            for _ in 0..<3 {
                group.addTask { _ = try await want(checks) { await calls.add() } }
            }
            try await group.waitForAll()
        }
        #expect(await calls.count == 1)
        _ = try await want(checks) { await calls.add() }
        #expect(await calls.count == 2, "no check is under way any more")
    }

    @Test("A caller who gives up leaves the line")
    func whoeverGivesUpLeavesTheLine() async throws {
        let checks = SingleFlight()
        try await whileChecking(checks) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    await #expect(throws: CancellationError.self) {
                        _ = try await want(checks) { Issue.record("two check at once") }
                    }
                }
                try await line(of: 1, at: checks)
                group.cancelAll()
                try await group.waitForAll()
            }
            let late = await #expect(throws: LedgerError.self) {
                _ = try await want(checks, within: .milliseconds(20)) { Issue.record("two check at once") }
            }
            #expect(late?.kind == .busy)
            #expect(checks.waiting(for: Self.receipt) == 0)
        }
        let calls = CallCount()
        _ = try await want(checks) { await calls.add() }
        #expect(await calls.count == 1)
    }

    /// A check that fails fails for all callers that wait for it; the next call tries again.
    @Test("What fails fails for all")
    func whatFailsFailsForAll() async throws {
        let (checks, failures) = (SingleFlight(), CallCount())
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    let error = await #expect(throws: LedgerError.self) {
                        _ = try await want(checks) {
                            await failures.add()
                            try await line(of: 2, at: checks)
                            throw LedgerError(.notFound, "It is gone.")
                        }
                    }
                    #expect(error?.kind == .notFound)
                }
            }
            try await group.waitForAll()
        }
        #expect(await failures.count == 1)
    }
}
