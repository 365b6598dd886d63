/// The kills of all rounds that are still to come, by customer.
actor Kills {
    /// A client died. It begins again with what it remembers.
    struct ClientDied: Error {}

    private let machines: ShopMachines
    private var planned: [String: Kill] = [:]
    private(set) var done: [Kill] = []
    /// What was never killed, as its step did not come.
    var left: [Kill] { Array(planned.values) }

    init(_ machines: ShopMachines) { self.machines = machines }

    func plan(_ kill: Kill, for customer: String) { planned[customer] = kill }

    private func take(_ step: PurchaseStep, of customers: [String]) -> Kill? {
        for customer in customers {
            guard let kill = planned[customer], kill.step == step else { continue }
            planned[customer] = nil
            done.append(kill)
            return kill
        }
        return nil
    }

    /// Makes a call of a step; what is to be killed at this step dies while the call is under way.
    nonisolated func at<Answer: Sendable>(
        _ step: PurchaseStep, of customers: [String], call: @escaping @Sendable () async throws -> Answer
    ) async throws -> Answer {
        guard let kill = await take(step, of: customers) else { return try await call() }
        // One call may be a step of several rounds.
        let callWithFurtherKills = { @Sendable in try await self.at(step, of: customers, call: call) }
        switch kill.victim {
        case .client:
            if kill.isLate { _ = try await callWithFurtherKills() }
            throw ClientDied()
        case .server, .worker, .database:
            async let answer = callWithFurtherKills()
            try await Task.sleep(for: .milliseconds(kill.afterMilliseconds))
            try await machines.kill(kill)
            return try await answer
        }
    }
}
