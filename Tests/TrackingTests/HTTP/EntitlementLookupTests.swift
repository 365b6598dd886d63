import Hummingbird
import Subscriptions
import Testing

@testable import Ledger
@testable import Tracking

@Suite struct EntitlementLookupTests {
    private static let now = Instant(milliseconds: 1_700_000_000_000)

    private static func entitlement(_ state: State, endsIn milliseconds: Int64?) -> Entitlement {
        Entitlement(
            name: "pro", granted: state != .expired, until: milliseconds.map { now + Delay(milliseconds: $0) },
            productID: "com.example.app.monthly", state: state.rawValue, reason: nil, environment: .production,
            basis: "verified", asOf: now, checkedAt: now)
    }

    private static func lookup(
        _ entitlements: [Entitlement], time: Instant? = nil, now: Instant = now, speedup: Int = 1
    ) -> EntitlementLookup {
        EntitlementLookup(
            bundleID: "com.example.app", customer: "kim", time: time, knownAt: nil, now: now, speedup: speedup,
            entitlements: entitlements)
    }

    @Test(
        arguments: [
            (nil, 1, 60), (90_000, 1, 60), (60_000, 1, 60), (59_999, 1, 59), (1500, 1, 1), (999, 1, 0), (-5000, 1, 60),
            (nil, 10, 6), (nil, 1000, 1), (500, 1000, 0),
        ] as [(Int64?, Int, Int64)])
    func howLongAnAnswerMayBeUsed(_ endsIn: Int64?, _ speedup: Int, _ seconds: Int64) {
        let active = Self.entitlement(.active, endsIn: endsIn)
        #expect(Self.lookup([active], speedup: speedup).ageSecondsMax == seconds)
        #expect(
            Self.lookup([Self.entitlement(.active, endsIn: nil), active], speedup: speedup).ageSecondsMax == seconds)
    }

    @Test func staleIsWhatAwaitsARenewal() {
        #expect(!Self.lookup([]).isStale)
        #expect(!Self.lookup([Self.entitlement(.active, endsIn: 1), Self.entitlement(.expired, endsIn: nil)]).isStale)
        #expect(
            Self.lookup([Self.entitlement(.active, endsIn: 1), Self.entitlement(.awaitingRenewal, endsIn: 1)]).isStale)
    }

    @Test func theTagFollowsTheMeaning() throws {
        let active = [Self.entitlement(.active, endsIn: 90_000)]
        let tag = try #require(Self.lookup(active).response(ifNoneMatch: []).headers[.eTag])
        let later = Self.lookup(active, now: Self.now + .seconds(20))
        #expect(later.response(ifNoneMatch: []).headers[.eTag] == tag)
        let unchanged = later.response(ifNoneMatch: ["\"other\", \(tag)"])
        #expect(unchanged.status == .notModified && unchanged.headers[.eTag] == tag)
        for changed in [
            Self.lookup([Self.entitlement(.expired, endsIn: nil)]), Self.lookup([]),
            Self.lookup(active, time: Self.now),
        ] {
            #expect(changed.response(ifNoneMatch: [tag]).status == .ok)
            #expect(changed.response(ifNoneMatch: []).headers[.eTag] != tag)
        }
    }

    @Test func theComparisonOfTagsIsWeak() {
        let tag = EntityTag(["a"])
        let opaque = String(tag.description.dropFirst(2))
        #expect(tag.description == EntityTag(["a"]).description && tag != EntityTag(["b"]))
        for field in [tag.description, opaque, "*", "\"x\",\(opaque)", " W/\"y\" ,  \(tag) "] {
            #expect(tag.isNamed(in: [field]), "\(field)")
        }
        for field in ["", "\"\"", "W/*", opaque.replacing("\"", with: ""), "w/\(opaque)"] {
            #expect(!tag.isNamed(in: [field]), "\(field)")
        }
    }
}
