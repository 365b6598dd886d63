import AppStoreSimulator
import Postgres
import Subscriptions
import Testing
import Tracking

/// An app that asks both channels, against the simulator over HTTP.
@Suite("An app that asks both channels tells one story, and what they say differently ends or is explained")
struct ChannelAgreementTests {
    private static func options(seed: UInt64) -> SimulatorOptions {
        var options = SimulatorOptions(seed: seed)
        (options.customers, options.sandboxCustomers, options.monthSeconds) = (48, 6, 6)
        return options
    }

    @Test(
        "With a third of the notifications dropped, doubled and reordered: the story is true, and nothing is unexplained"
    )
    func bothAgree() async throws {
        try await PretendWorld.with(Self.options(seed: 20_261_128)) { world in
            try await world.tracker.ledger.apps.change(world.bundleID, .verifying(by: .both))
            try await world.hearing(dropped: 0.3, doubled: 0.3, reordered: 0.3) { try await world.work(seconds: 14) }
            world.clock.stop()
            try await world.checkEverything()
            try await world.checkEverything()
            let standing = try #require(try await world.tracker.ledger.apps.channelStanding(of: world.bundleID))
            #expect(standing.compared == standing.live, "\(standing)")
            try await AgreementTests.expectAgreement(in: world, renewalsMin: 40)
            let rebuilt = try await world.rebuild(correcting: false)
            #expect(rebuilt.differencesBesideRetractions == [])
            try await world.expectNoViolations()
            try await expectExplained(in: world)
        }
    }

    /// Expects that subscriptions were compared, and that no difference is left that nothing explains.
    private func expectExplained(in world: PretendWorld) async throws {
        let database = Database(DatabaseConfiguration(connectionString: world.connectionString)) { print($0) }
        let left = try await database.query(
            Statement(
                name: "left",
                sql: """
                    SELECT concat_ws(' ', d.original_transaction_id, d.transaction_id, d.fact, d.verify_receipt, '|',
                                     d.server_api, 'seen', d.first_seen_at, d.last_seen_at, 'asked', r.asked_at,
                                     r.outcome, r.reason) AS line
                    FROM perennial.channel_difference d
                    LEFT JOIN ledger.subscription s USING (original_transaction_id)
                    LEFT JOIN ledger.receipt r ON r.receipt_id = s.polled_by
                    WHERE d.standing IN ('waiting', 'unexplained')
                    """))
        for line in try left.map({ try $0.text("line") }) { Issue.record("\(line)") }
        let counts = try await database.query(
            Statement(
                name: "counts",
                sql: "SELECT standing, count(*) AS n FROM perennial.channel_difference GROUP BY standing ORDER BY 1"))
        print("differences: \(try counts.map { "\(try $0.text("standing")) \(try $0.int8("n"))" })")
        await database.close()
        let compared = try await world.number(
            "SELECT count(*) FROM ledger.channel_comparison WHERE compared_at IS NOT NULL")
        #expect(compared > 40)
    }
}
