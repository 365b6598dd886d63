import Hummingbird
import Subscriptions
import Testing

@testable import Server
@testable import Tracking

@Suite("A lookup states its age and has a tag") struct EntitlementLookupTests {
    private static let now = Instant(milliseconds: 1_700_000_000_000)

    private static func entitlement(
        _ state: State, endsIn milliseconds: Int64?, reason: Reason? = nil, checkedAgo: Delay = .zero,
        basis: String = "verified", expiredAgo: Delay? = nil, environment: StoreEnvironment = .production
    ) -> Entitlement {
        Entitlement(
            name: "pro", granted: state.isEntitled, until: milliseconds.map { now + Delay(milliseconds: $0) },
            productID: "com.example.app.monthly", state: state.rawValue, reason: reason?.rawValue,
            environment: environment, basis: basis, asOf: now - checkedAgo, checkedAt: now - checkedAgo,
            expiresAt: expiredAgo.map { now - $0 }, endedAt: nil)
    }

    private static func lookup(
        _ entitlements: [Entitlement], time: Instant? = nil, knownAt: Instant? = nil, now: Instant = now,
        speedup: Int = 1
    ) -> EntitlementLookup {
        EntitlementLookup(
            bundleID: "com.example.app", customer: "kim", time: time, knownAt: knownAt,
            terms: FreshnessTerms(
                production: .standard(for: .production, speedup: speedup),
                sandbox: .standard(for: .sandbox, speedup: speedup), leaseSeconds: 60),
            found: CustomerEntitlements(entitlements: entitlements, now: now, source: .stored))
    }

    private static let day: Int64 = 86_400_000

    /// Each state, asked about so long ago: the bound in seconds, and whether the answer is older.
    private static let rows: [(String, Entitlement, Int64?, Bool)] = [
        ("active", entitlement(.active, endsIn: 60 * day), 34 * 86_400, false),
        ("active, its end near", entitlement(.active, endsIn: day), 86_400 + 150, false),
        ("active, not asked", entitlement(.active, endsIn: 9 * day, checkedAgo: .days(35)), 34 * 86_400, true),
        ("a purchase", entitlement(.active, endsIn: nil, checkedAgo: .days(900)), nil, false),
        ("sandbox", entitlement(.active, endsIn: 60_000, environment: .sandbox), 76, false),
        (
            "just ended", entitlement(.awaitingRenewal, endsIn: 7_140_000, reason: .renewal, checkedAgo: .minutes(30)),
            1_890, true
        ),
        (
            "ended, asked since",
            entitlement(.awaitingRenewal, endsIn: 3_600_000, reason: .renewal, checkedAgo: .minutes(20)),
            180 + 1_680, true
        ),
        (
            "held", entitlement(.awaitingRenewal, endsIn: 29 * day, reason: .renewal, checkedAgo: .days(2)),
            2 * 86_400 - 86_400 - 7_200 + 150, true
        ),
        ("replacement", entitlement(.awaitingRenewal, endsIn: day, reason: .replacement), 6 * 3_600, false),
        ("grace", entitlement(.gracePeriod, endsIn: 3_600_000), 3_600 + 180, false),
        ("grace, not asked", entitlement(.gracePeriod, endsIn: 9 * day, checkedAgo: .days(3)), 174_600, true),
        ("retry", entitlement(.billingRetry, endsIn: nil, expiredAgo: .days(2)), 12 * 3_600 + 2_160, false),
        ("expired", entitlement(.expired, endsIn: nil, expiredAgo: .days(5)), 2 * 86_400 + 1_800, false),
        (
            "expired, not asked", entitlement(.expired, endsIn: nil, checkedAgo: .days(10), expiredAgo: .days(12)),
            5 * 86_400 + 1_800, true
        ),
        ("expired for long", entitlement(.expired, endsIn: nil, expiredAgo: .days(800)), nil, false),
        ("refunded purchase", entitlement(.revoked, endsIn: nil, reason: .refund), nil, false),
        ("by hand", entitlement(.active, endsIn: day, basis: "by_hand"), nil, false),
    ]

    @Test("Each answer says how old it may be", arguments: rows.indices)
    func howOldAnAnswerMayBe(_ index: Int) {
        let (name, entitlement, seconds, isStale) = Self.rows[index]
        let freshness = Self.lookup([entitlement]).freshness
        #expect(freshness.ageSecondsMax == seconds, "\(name)")
        #expect(freshness.isStale == isStale, "\(name)")
    }

    @Test("Many are as fresh as the oldest")
    func manyAreAsFreshAsTheOldest() {
        #expect(Self.lookup([]).freshness == Freshness(of: []))
        #expect(Self.lookup([]).freshness.ageSecondsMax == nil && !Self.lookup([]).freshness.isStale)
        let all = Self.lookup([
            Self.entitlement(.active, endsIn: 60 * Self.day), Self.entitlement(.active, endsIn: nil),
            Self.entitlement(.awaitingRenewal, endsIn: 1, reason: .renewal),
        ])
        #expect(all.freshness.isStale && (all.freshness.ageSecondsMax ?? .max) < 34 * 86_400)
    }

    @Test("A faster store is asked sooner")
    func aFasterStoreIsAskedSooner() {
        let active = Self.entitlement(.active, endsIn: 600 * Self.day)
        #expect(Self.lookup([active], speedup: 1_000).freshness.ageSecondsMax == 2_938)
    }

    @Test("The tag follows the meaning")
    func theTagFollowsTheMeaning() throws {
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

    /// A check whose answer is equal keeps the tag: a caller with the earlier answer has this one.
    @Test("The tag outlives a check")
    func theTagOutlivesACheck() throws {
        let before = Self.lookup([Self.entitlement(.active, endsIn: 90_000, checkedAgo: .minutes(5))])
        let after = Self.lookup([Self.entitlement(.active, endsIn: 90_000)])
        let tag = try #require(before.response(ifNoneMatch: []).headers[.eTag])
        #expect(after.response(ifNoneMatch: [tag]).status == .notModified)
        var tags: Set<String> = [tag]
        for (name, entitlement) in [
            ("longer", Self.entitlement(.active, endsIn: 90_001)),
            ("over", Self.entitlement(.expired, endsIn: nil, reason: .voluntary, expiredAgo: .days(2))),
            (
                "for another reason",
                Self.entitlement(.expired, endsIn: nil, reason: .billingError, expiredAgo: .days(2))
            ),
            ("of a tester", Self.entitlement(.active, endsIn: 90_000, environment: .sandbox)),
            ("by hand", Self.entitlement(.active, endsIn: 90_000, basis: "by_hand")),
            ("old", Self.entitlement(.active, endsIn: 90_000, checkedAgo: .days(35))),
        ] {
            let other = try #require(Self.lookup([entitlement]).response(ifNoneMatch: []).headers[.eTag])
            #expect(tags.insert(other).inserted, "\(name)")
        }
    }

    /// All that will ever be known is, for now, all that is known now.
    @Test("What is known later is as fresh as now")
    func whatIsKnownLaterIsAsFreshAsNow() {
        let active = [Self.entitlement(.active, endsIn: 60 * Self.day)]
        #expect(!Self.lookup(active, knownAt: Self.now + .days(1_000)).freshness.isStale)
    }

    @Test("The comparison of tags is weak")
    func theComparisonOfTagsIsWeak() {
        func made(_ texts: String?...) -> EntityTag {
            var tag = EntityTag()
            for text in texts { tag.add(text) }
            return tag
        }
        let tag = made("a", "b")
        let opaque = String(tag.description.dropFirst(2))
        #expect(tag == made("a", "b") && tag != made("ab") && tag != made("a", nil) && made(nil) != made(""))
        for field in [tag.description, opaque, "*", "\"x\",\(opaque)", " W/\"y\" ,  \(tag) "] {
            #expect(tag.isNamed(in: [field]), "\(field)")
        }
        for field in ["", "\"\"", "W/*", opaque.replacing("\"", with: ""), "w/\(opaque)"] {
            #expect(!tag.isNamed(in: [field]), "\(field)")
        }
    }
}
