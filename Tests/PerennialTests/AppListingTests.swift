import Ledger
import Server
import Subscriptions
import TestSupport
import Testing
import Tracking

@testable import perennial

@Suite("The list of apps shows every setting") struct AppListingTests {
    @Test func `whatever can be set of an app is shown`() async throws {
        try await withMigratedDatabase { database, _ in
            let ledger = SubscriptionLedger(database: database)
            try await ledger.apps.add(NewApp(bundleID: "a", callsPerSecond: 7, burst: 8))
            var change = AppChange()
            (change.name, change.sandboxAllowed, change.ownershipPolicy) = ("A", false, .keep)
            (change.sweep, change.preCheckSpread) = (.relaxed, .minutes(20))
            (change.leeway, change.sandboxLeeway, change.outageAllowance) = (.minutes(3), .minutes(1), .days(2))
            try await ledger.apps.change("a", change)
            let shown = Listing(apps: [try await ledger.apps.app("a")]).json
            #expect(
                shown == [
                    [
                        "bundle_id": "a", "name": "A", "secret": false, "sandbox": false, "ownership": "keep",
                        "rate": 7,
                        "burst": 8, "leeway_s": 180, "sandbox_leeway_s": 60, "outage_allowance_s": 172_800,
                        "paused_until": nil, "pause_reason": nil, "sweep": "relaxed", "notifications": false,
                        "pre_check_s": 1_200,
                    ]
                ])
        }
    }
}
