import Subscriptions
import Tracking

/// The database alone: claims and settles as if Apple had answered at once what it answered last time.
struct DatabaseCeiling {
    let world: World

    /// Works until nothing is due; returns how many receipts that were.
    func work() async throws -> Int {
        let worker = try await world.ledger.claims.startWorker(host: "benchmark", process: 1)
        let app = try await world.ledger.apps.app(World.app)
        return try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    var receipts = 0
                    while true {
                        let claims = try await world.ledger.claims.claim(
                            for: worker, Lane.allCases.map { Quota(app: app, lane: $0, receipts: 200) },
                            leaseSeconds: 60)
                        guard !claims.isEmpty else { return receipts }
                        receipts += claims.count
                        try await settle(claims, as: worker)
                    }
                }
            }
            return try await group.reduce(0, +)
        }
    }

    private func settle(_ claims: [Claim], as worker: WorkerID) async throws {
        let answers = claims.compactMap { claim in
            claim.fingerprint.flatMap { EqualAnswer(to: claim, fingerprint: $0, asOf: claim.claimedAt) }
        }
        _ = try await world.ledger.settlements.confirm(answers)
    }
}
