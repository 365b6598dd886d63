import AppStoreSimulator
import Postgres
import Subscriptions
import Synchronization
import TestSupport
import Testing

@testable import Tracking

/// A whole simulated life can be rebuilt from Apple's answers, and every reason that is given for it matters.
@Suite("A simulated life is rebuilt from Apple's answers")
struct RebuildTests {
    @Test("A life is rebuilt from its observations, and every cited reason matters")
    func aLifeIsRebuiltFromItsObservations() async throws {
        try await PretendWorld.with(seed: 20_261_122, customers: 36, sandboxCustomers: 4, monthSeconds: 6) { world in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await world.work(seconds: 12) }
                group.addTask {
                    // Beside a worker: nothing is corrected, for nothing is wrong.
                    try await Task.sleep(for: .seconds(6))
                    let beside = try await world.rebuild(correcting: true)
                    #expect(beside.differences == [])
                }
                try await group.waitForAll()
            }
            let faithful = try await world.rebuild(correcting: false)
            #expect(faithful.differences == [])
            #expect(faithful.gaps.map(\.reason) == [])
            #expect(faithful.examined > 36)
            try await world.run(
                """
                UPDATE ledger.period SET expires_at = expires_at + interval '1 second'
                WHERE period_id IN (SELECT min(period_id) FROM ledger.period GROUP BY subscription_id LIMIT 3);
                UPDATE ledger.subscription SET will_renew = NULL, renews_to_product_id = NULL WHERE will_renew;
                """)
            let found = try await world.rebuild(correcting: false)
            #expect(found.differences.count >= 2)
            #expect(try await world.exitStatus(of: ["rebuild", "--verify"]) == 2)
            let mended = try await world.rebuild(correcting: true)
            #expect(mended.corrected > 0 && mended.differences == found.differences)
            #expect(try await world.rebuild(correcting: false).differences == [])
            #expect(try await world.exitStatus(of: ["rebuild", "--verify"]) == 0)
            try await expectReasonsThatMatter(in: world)
            try await world.expectNoViolations()
        }
    }

    /// Explains every customer; a cited input that is taken out of every answer changes the verdict.
    private func expectReasonsThatMatter(in world: PretendWorld) async throws {
        var cited = 0
        for customer in Set(world.simulator.truth().map(\.customer)).sorted() {
            let bodies = Mutex<[Int64: [UInt8]]>([:])
            let whole = try await world.reasons(of: customer) { kept in
                bodies.withLock { $0[kept.observation.id] = kept.body }
                return kept.evidence
            }
            let explanation = CustomerExplanation(whole)
            #expect(explanation.subscriptions.allSatisfy { $0.gap == nil }, "\(explanation.text)")
            #expect(explanation.purchases.allSatisfy { $0.gap == nil }, "\(explanation.text)")
            func without(_ step: CustomerExplanation.Step) async throws -> Reasons {
                let observation = try #require(step.observation, "\(step)")
                let input = CitedInput(step.path)
                let body = try #require(bodies.withLock { $0[observation.id] })
                let names = try #require(try input.names(in: body), "\(input) leads nowhere")
                cited += 1
                return try await world.reasons(of: customer, at: whole.at) { kept in
                    (try? input.removed(from: kept.body, where: names)).flatMap { kept.with($0).evidence }
                }
            }
            for one in explanation.subscriptions {
                for step in one.steps(of: one.verdict(at: whole.at)) {
                    let after = try await without(step).subscriptions.first { $0.id == one.id }?.replayed
                    #expect(
                        after.map { Outcome($0, one, at: whole.at) } != Outcome(one.state, one, at: whole.at),
                        "\(step.rule) \(step.path) of \(one.state.facts.originalTransactionID)")
                }
            }
            for one in explanation.purchases {
                for step in one.steps(at: whole.at) {
                    let after = try await without(step).purchases.first { $0.id == one.id }
                    #expect(
                        after?.gap != nil, "\(step.path) of \(one.state.facts.key): what is stored follows without it")
                }
            }
        }
        #expect(cited > 100, "hardly anything was cited; this test would prove little")
    }

    /// What an explanation says of a subscription, and by which rule.
    private struct Outcome: Hashable {
        var verdict: Verdict
        let rule: String?
        let willRenew: Bool?
        let periods: Int

        init(_ state: SubscriptionState, _ subscription: SubscriptionReasons, at: Instant) {
            verdict = Subscriptions.verdict(of: state.facts, at: at, policy: subscription.policy)
            rule = verdict.because.first?.rule
            verdict.because = []
            willRenew = state.willRenew
            periods = state.periods
        }
    }
}

extension KeptAnswer {
    /// The same answer with another body.
    fileprivate func with(_ body: [UInt8]) -> KeptAnswer {
        KeptAnswer(observation: observation, bundleID: bundleID, environment: environment, body: body)
    }
}

extension PretendWorld {
    /// How the real executable ends.
    func exitStatus(of arguments: [String]) async throws -> Int32 {
        try await start(arguments, speedup: speedup).ended()
    }

    /// A rebuild of everything.
    func rebuild(correcting: Bool) async throws -> RebuildBatch {
        var sum = RebuildBatch()
        var place: RebuildPlace? = .start
        while let here = place {
            let batch = try await tracker.ledger.operations.rebuild(
                from: here, limit: 7, RebuildScope(), correcting: correcting, reading: .present)
            sum.examined += batch.examined
            sum.corrected += batch.corrected
            sum.differences += batch.differences
            sum.gaps += batch.gaps
            place = batch.next
        }
        return sum
    }

    /// What decides for a customer, from the stored answers or from those answers changed.
    func reasons(
        of customer: String, at: Instant? = nil,
        reading: @escaping @Sendable (KeptAnswer) -> Evidence? = { $0.evidence }
    ) async throws -> Reasons {
        try await tracker.ledger.customers.reasons(
            app: BundleID(simulator.options.bundleID), customer: customer, at: at,
            reading: EvidenceReader(answer: reading, notification: { _ in nil }))
    }
}
