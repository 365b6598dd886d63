import Crypto
import JSON
import Server
import Subscriptions
import Testing
import TestSupport
import Tracking

@testable import perennial

@Suite("The list of apps shows every setting") struct AppListingTests {
    @Test func `whatever can be set of an app is shown`() async throws {
        try await withMigratedDatabase { database, _ in
            let ledger = SubscriptionLedger(database: database)
            try await ledger.apps.add("a", callsPerSecond: 7, burst: 8)
            var change = AppChange()
            (change.name, change.sandboxAllowed, change.ownershipPolicy) = ("A", false, .keep)
            (change.sweep, change.preCheckSpread) = (.relaxed, .minutes(20))
            (change.leeway, change.sandboxLeeway, change.outageAllowance) = (.minutes(3), .minutes(1), .days(2))
            try await ledger.apps.change("a", change)
            let sealed = SubscriptionLedger(
                database: database, seal: try SecretSeal(masterKey: [UInt8](repeating: 7, count: 32)))
            let key = P256.Signing.PrivateKey().pemRepresentation
            try await sealed.apps.storeOfferKey(try ConnectKey(pem: key, id: "K", issuer: "I"), of: "a")
            try await sealed.apps.storeServerKey(try ConnectKey(pem: key, id: "S", issuer: "I"), of: "a")
            var moved = AppChange()
            (moved.verifier, moved.appleAppID) = (.serverAPI, 42)
            try await ledger.apps.change("a", moved)
            let shown = Listing(apps: [try await ledger.apps.app("a")]).json
            #expect(
                shown == [
                    [
                        "bundle_id": "a", "name": "A", "secret": false, "sandbox": false, "ownership": "keep",
                        "rate": 7,
                        "burst": 8, "leeway_s": 180, "sandbox_leeway_s": 60, "outage_allowance_s": 172_800,
                        "paused_until": nil, "pause_reason": nil, "sweep": "relaxed", "notifications": false,
                        "pre_check_s": 1_200, "offer_key_id": "K", "offer_issuer_id": "I",
                        "verifier": "server_api", "server_key_id": "S", "server_issuer_id": "I", "apple_app_id": 42,
                    ]
                ])
        }
    }
}
