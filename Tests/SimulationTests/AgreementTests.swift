import AppStoreSimulator
import Foundation
import Postgres
import Subscriptions
import Testing

/// The line against the simulator: after a while of accelerated life both must tell the same story.
@Suite("The ledger and the simulator agree")
struct AgreementTests {
    @Test("After two months of accelerated life, periods, owners, access and events are equal")
    func theLedgerAgreesWithTheSimulator() async throws {
        try await PretendWorld.with(seed: 20_261_121, customers: 60, sandboxCustomers: 6, monthSeconds: 6) { world in
            try await world.work(seconds: 14)
            world.clock.stop()
            try await world.checkEverything()
            try await Self.expectAgreement(in: world, renewalsMin: 60)
            try await world.expectNoViolations()
        }
    }

    /// Expects that the ledger tells the story of each customer as the simulator does, of all or of some. The first answers may
    /// have lagged by some time.
    static func expectAgreement(
        in world: PretendWorld, of known: Set<String>? = nil, renewalsMin: Int, lagMilliseconds: Int64 = 0
    ) async throws {
        let reported = try await world.reported()
        var renewals = 0
        // Receipts of iOS 6 show the newest period only, so that what was missed is missed.
        for customer in world.simulator.truth() where !customer.accountDeleted && !customer.hasLegacyReceipts {
            guard known?.contains(customer.customer) ?? true else { continue }
            for truth in customer.subscriptions {
                let owner = reported.subscriptions[truth.originalTransactionID]?.customer
                #expect(owner == customer.customer, "owner of \(truth.originalTransactionID)")
                try agree(truth, customer, reported, lagMilliseconds, renewals: &renewals)
            }
        }
        #expect(renewals > renewalsMin, "the population hardly lived; this test would prove little")
        try await expectDenseFeed(world)
    }

    /// Expects that the ledger tells the story of a subscription as the simulator does.
    private static func agree(
        _ truth: SubscriptionTruth, _ customer: CustomerTruth, _ reported: Reported, _ lagMilliseconds: Int64,
        renewals: inout Int
    ) throws {
        let id = truth.originalTransactionID
        let now = try #require(reported.subscriptions[id], "subscription \(id) of \(customer.customer) is unknown")
        #expect(now.periods == truth.periods.count, "periods of \(id)")
        #expect(truth.agrees(with: now), "access of \(id) at \(customer.now)")
        #expect(truth.hasStatus(of: now), "\(now.state) of \(id), whose status is \(truth.appleStatus)")
        let events = reported.events[id] ?? []
        // Seats that are added to a period are no event.
        let later = truth.periods.dropFirst(events.first?.periods ?? 1).count { !$0.isAddition }
        let continued = events.count { Reported.continuations.contains($0.kind) || $0.isReplacement(in: truth) }
        #expect(continued == later, "events of later periods of \(id): \(events.map(\.kind))")
        let refunds = truth.log.filter { $0.kind == .refunded }.map(\.atMilliseconds)
        let shownUntil = now.firstAsOf - lagMilliseconds
        let reversals = truth.log.count { $0.kind == .refundReversed && $0.atMilliseconds > shownUntil }
        // A refund while the first answer was read may be part of the first sight.
        let fewest = refunds.count { $0 > now.firstRecordedAt }
        let most = refunds.count { $0 > shownUntil }
        if reversals == 0 {
            let granted = events.count { $0.kind == "refund.granted" }
            #expect((fewest...most).contains(granted), "refunds of \(id)")
        }
        #expect(events.map(\.version) == events.map(\.version).sorted(), "order of \(id)")
        renewals += later
    }

    /// Expects that each event has a position, and that none is missing.
    private static func expectDenseFeed(_ world: PretendWorld) async throws {
        let database = Database(DatabaseConfiguration(connectionString: world.connectionString)) { print($0) }
        let rows = try await database.query(
            Statement(
                name: "dense",
                sql: """
                    SELECT count(*) AS placed, max(position) AS last, (SELECT count(*) FROM ledger.event) AS events
                    FROM ledger.event_feed
                    """))
        await database.close()
        let row = try #require(rows.first)
        #expect(try row.int8("placed") == row.int8("last"))
        #expect(try row.int8("placed") == row.int8("events"))
    }
}
