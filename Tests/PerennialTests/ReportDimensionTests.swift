import Foundation
import JSON
import Postgres
import SeededRandom
import Server
import SQL
import Testing
import TestSupport

@testable import perennial

/// The history with more prices and more returns in it. The tests only read.
private let history: OncePerSuite<Database> = OncePerSuite { lend in
    try await ReportFigureTests.withHistory { database in
        for name in ["mrr_movement-prices", "churn-imported", "trial_cohorts-refunded"] {
            let file = ReportFigureTests.folder.appending(path: "\(name).sql")
            let more = try String(contentsOf: file, encoding: .utf8)
            try await database.transaction { try $0.script(more) }
        }
        try await lend(database)
    }
}

@Suite("A report by product adds up to the total", history) struct ReportDimensionTests {
    private func listing(_ report: String, _ given: [String: String], in database: Database) async throws -> Listing {
        let file = try #require(Reports.all.first { $0.name == report })
        let statement = ReportStatement(file.text)
        let values = try statement.values(given, report: report)
        return try await database.transaction { try Listing(of: statement, values, in: $0) }
    }

    /// The sums of all columns that add up, by the columns that identify a row apart from its product.
    private func sums(_ listing: Listing) throws -> [String: [String: Decimal]] {
        let keys = listing.columns.indices.filter {
            ["day", "since", "bundle_id", "currency", "month"].contains(listing.columns[$0])
        }
        let figures = listing.columns.indices.filter { index in
            let name = listing.columns[index]
            return !keys.contains(index) && !["product_id", "age_days", "is_mature", "is_complete"].contains(name)
                && !name.hasSuffix("_pct") && !name.hasSuffix("_each")
        }
        #expect(figures.count > 1)
        return listing.rows.reduce(into: [:]) { all, row in
            let key = keys.map { "\(row[$0])" }.joined(separator: " ")
            for index in figures {
                all[key, default: [:]][listing.columns[index], default: 0] += Self.number(row[index])
            }
        }
    }

    private static func number(_ value: JSONValue) -> Decimal {
        switch value {
        case .integer(let number): Decimal(number)
        case .number(let text), .string(let text): Decimal(string: text) ?? 0
        case .null, .bool, .array, .object: 0
        }
    }

    private func expectProductsAddUp(
        _ report: SQLFile, _ given: [String: String], in database: Database, _ context: String = ""
    ) async throws -> Listing {
        let total = try await listing(report.name, given, in: database)
        let products = try await listing(report.name, given.merging(["by": "product"]) { $1 }, in: database)
        let place = try #require(total.columns.firstIndex(of: "product_id"))
        #expect(total.rows.allSatisfy { $0[place] == .null })
        #expect(products.rows.allSatisfy { $0[place] != .null })
        let expected = try sums(total)
        #expect(try sums(products) == expected, "\(report.name) \(given) \(context)")
        #expect(!expected.isEmpty, "\(report.name) \(given)")
        return products
    }

    private static let reports = Reports.all.filter { ReportStatement($0.text).variables.contains("by") }

    @Test func `products add up to the total, whatever the buckets, the zone and the knowledge`() async throws {
        #expect(Self.reports.count == 6)
        try await history.use { database in
            for report in Self.reports {
                let buckets = report.text.contains(":'bucket'") ? ReportVariableTests.buckets : [""]
                for bucket in buckets {
                    for known in ["infinity", "2026-03-20 15:00Z", "2026-02-23Z"] {
                        var given = ["as_known_at": known, "time_zone": "Asia/Tokyo", "from": "2024-12-15"]
                        if !bucket.isEmpty { given["bucket"] = bucket }
                        let products = try await expectProductsAddUp(report, given, in: database)
                        let place = try #require(products.columns.firstIndex(of: "product_id"))
                        #expect(Set(products.rows.map { $0[place] }) == [.string("monthly"), .string("yearly")])
                    }
                }
            }
        }
    }

    @Test(arguments: [41, 8] as [UInt64])
    func `figures of drawn subscriptions add up, have the cause of their day's end, and count each refund once`(
        seed: UInt64
    ) async throws {
        try await withMigratedDatabase { database, _ in
            try await database.transaction { try $0.script(DrawnSubscriptions(seed: seed).script) }
            for zone in ["UTC", "America/Los_Angeles"] {
                for report in Self.reports {
                    let buckets = report.text.contains(":'bucket'") ? ["day", "month"] : [""]
                    for bucket in buckets {
                        for known in ["infinity", "2025-06-20 15:00Z"] {
                            var given = ["as_known_at": known, "time_zone": zone]
                            if !bucket.isEmpty { given["bucket"] = bucket }
                            _ = try await expectProductsAddUp(report, given, in: database, "seed \(seed)")
                        }
                    }
                }
                for (number, (rule, exceptions)) in DrawnSubscriptions.exceptions(zone: zone).enumerated() {
                    let found = try await database.query(.init(name: "rule \(number) \(zone)", sql: exceptions))
                    #expect(found.isEmpty, "\(rule): \(found.count) exceptions, \(zone), seed \(seed)")
                }
                let cohorts = try await listing("retention", ["time_zone": zone, "by": "product"], in: database)
                let values = try await listing("lifetime_value", ["time_zone": zone, "by": "product"], in: database)
                func sizes(_ listing: Listing) throws -> [String: JSONValue] {
                    let places = try ["since", "product_id", "subscriptions"].map {
                        try #require(listing.columns.firstIndex(of: $0))
                    }
                    return listing.rows.reduce(into: [:]) { $0["\($1[places[0]]) \($1[places[1]])"] = $1[places[2]] }
                }
                #expect(try sizes(cohorts) == sizes(values), "\(zone), seed \(seed)")
                #expect(cohorts.rows.count > 50)
            }
        }
    }

    @Test func `each day's movements lead from one day's revenue of a product to the next`() async throws {
        try await history.use { database in
            for by in ["total", "product"] {
                let levels = try await listing("mrr", ["by": by], in: database)
                var mrr: [String: Decimal] = [:]
                for row in levels.rows { mrr["\(row[0]) \(row[2]) \(row[3])"] = Self.number(row[5]) }
                let moves = try await listing("mrr_movement", ["by": by], in: database)
                let places = try [
                    "opening", "new", "reactivation", "first_full_price", "expansion", "contraction",
                    "currency_change", "product_change", "churn", "closing",
                ].map { try #require(moves.columns.firstIndex(of: $0)) }
                for row in moves.rows where row[3] != .null {
                    let figures = places.map { Self.number(row[$0]) }
                    let key = "\(row[0]) \(row[2]) \(row[3])"
                    #expect(figures.dropLast().reduce(0, +) == figures.last, "\(key)")
                    #expect(figures.last == mrr[key] ?? 0, "\(key)")
                }
                #expect(moves.rows.count > 20)
            }
        }
    }
}

/// Subscriptions with everything that moves figures, made by a seed: trials, offers, upgrades, refunds within a day and
/// after the end, grace within a day, prices of Apple's in several currencies and unknown ones, family shares, returns.
private struct DrawnSubscriptions {
    private static let products = ["monthly", "plus", "yearly"]
    private static let hour = 3_600
    private static let day = 24 * hour
    /// 2024-12-01T00:00:00Z, in seconds since 1970.
    private static let start = 1_733_011_200
    private static let end = start + 500 * day

    private var random: Seeded
    private var periods: [String] = []
    private var spans: [String] = []

    init(seed: UInt64) {
        random = Seeded(seed: seed)
        for number in 0..<120 { live("x\(number)") }
    }

    /// What makes the history, with a catalog.
    var script: String {
        """
        INSERT INTO ledger.app (bundle_id, name) VALUES ('com.example.app', 'Example');
        INSERT INTO ledger.app_budget (app_id) SELECT app_id FROM ledger.app;
        INSERT INTO ledger.product (app_id, product_id, group_id, level, period, price_milliunits, currency)
        SELECT app_id, p.* FROM ledger.app CROSS JOIN (VALUES
            ('monthly', 'g', 3, 'P1M', 12000, 'USD'), ('plus', 'g', 2, 'P1M', 12000, 'USD'),
            ('yearly', 'g', 1, 'P1Y', NULL, NULL)) p;
        SELECT ledger.record_price(app_id, p, '', tstzrange(NULL, NULL), 12000, 'USD', '2024-12-01Z')
        FROM ledger.app CROSS JOIN unnest('{monthly,plus}'::text[]) p;
        INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
        SELECT app_id, 'Production', 'x' || n FROM ledger.app CROSS JOIN generate_series(0, 119) n;
        INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, cancelled_at,
                                   is_upgraded, revocation_percentage, is_trial, is_intro, ownership, price_milliunits,
                                   price_currency, path, recorded_at)
        SELECT subscription_id, p.product_id, 1, to_timestamp(p.since), to_timestamp(p.until), to_timestamp(p.cancelled),
               p.is_upgraded, p.share, p.offer = 'trial', p.offer = 'intro', p.ownership, p.price, p.currency, 'row',
               '2024-12-01Z'
        FROM (VALUES \(periods.joined(separator: ",\n")))
            AS p (otid, product_id, since, until, cancelled, is_upgraded, share, offer, ownership, price, currency)
        JOIN ledger.subscription ON original_transaction_id = p.otid;
        INSERT INTO ledger.subscription_span
            (subscription_id, valid, known, state, reason, entitled, product_id, flags, version)
        SELECT subscription_id, tstzrange(to_timestamp(t.since), to_timestamp(t.until)), tstzrange('2024-12-01Z', NULL),
               t.state::ledger.state, NULLIF(t.reason, '')::ledger.reason, t.state IN ('active', 'grace_period'),
               t.product_id, CASE t.flag WHEN '' THEN '{}' ELSE ARRAY[t.flag] END, 1
        FROM (VALUES \(spans.joined(separator: ",\n"))) AS t (otid, since, until, state, reason, product_id, flag)
        JOIN ledger.subscription ON original_transaction_id = t.otid;
        """
    }

    /// For each rule a query that finds what breaks it.
    static func exceptions(zone: String) -> [(rule: String, query: String)] {
        let moved = "perennial.mrr_movement_as_known('infinity', '\(zone)') m"
        return [
            (
                "a subscription churns for the reason of the state at the day's end",
                """
                SELECT 1 FROM \(moved)
                CROSS JOIN LATERAL (SELECT (m.day + 1)::timestamp AT TIME ZONE '\(zone)' AS ends_at) d
                JOIN perennial.timeline t ON t.subscription_id = m.stream_id AND t.known_until IS NULL
                    AND t.valid_from < d.ends_at AND d.ends_at <= t.valid_until
                WHERE m.kind = 'churn' AND isfinite(m.day) AND (m.ended_state, m.ended_reason) IS DISTINCT FROM (t.state, t.reason)
                """
            ),
            (
                "a subscription is new on the day of its first charge only",
                """
                SELECT 1 FROM \(moved)
                JOIN (SELECT stream_id, min(paying_from) AS began_at FROM perennial.paying_as_known('infinity')
                      GROUP BY stream_id) b USING (stream_id)
                WHERE m.kind IN ('new', 'reactivation')
                  AND (m.kind = 'new') <> (m.day = (b.began_at AT TIME ZONE '\(zone)')::date)
                """
            ),
            (
                "the first full price is that of the first day on which a price without an offer was charged",
                """
                SELECT 1 FROM \(moved)
                CROSS JOIN LATERAL (SELECT (m.day + 1)::timestamp AT TIME ZONE '\(zone)' AS ends_at) d
                JOIN (SELECT stream_id, min(paying_from) AS began_at FROM perennial.paying_as_known('infinity')
                      WHERE offer IS NULL GROUP BY stream_id) b USING (stream_id)
                LEFT JOIN perennial.paying_as_known('infinity') p ON p.stream_id = m.stream_id AND p.offer IS NULL
                    AND p.paying_from < d.ends_at AND d.ends_at <= p.paying_until
                WHERE m.kind IN ('first_full_price', 'expansion', 'contraction') AND p.stream_id IS NOT NULL
                  AND (m.kind = 'first_full_price') <> (m.day = (b.began_at AT TIME ZONE '\(zone)')::date)
                """
            ),
            (
                "what Apple gives back is never more than the price, and all of it after a refund in full",
                """
                SELECT 1 FROM perennial.revenue_as_known('infinity') r
                JOIN perennial.charges_as_known('infinity') c ON c.kind = r.charge_kind AND c.charge_id = r.charge_id
                GROUP BY r.charge_id
                HAVING sum(r.amount_milliunits) < 0
                    OR (bool_or(c.revocation_percentage = 100000) AND sum(r.amount_milliunits) <> 0)
                """
            ),
        ]
    }

    private mutating func pick<Choice>(_ choices: [Choice]) -> Choice {
        choices[Int.random(in: 0..<choices.count, using: &random)]
    }

    /// A period as it is charged, and what follows it.
    private struct Turn {
        let product: String
        let since: Int
        let until: Int
        var offer = ""
        var cancelled: Int?
        var isUpgraded = false
        var share: Int?
        var nextProduct: String
        var next: Int
        /// What was true from when on, in words of the timeline.
        var told: [(from: Int, state: String, reason: String)]

        init(_ product: String, since: Int, length: Int) {
            (self.product, self.since, until, nextProduct, next) = (
                product, since, since + length, product, since + length
            )
            told = [(since, "active", "")]
        }
    }

    /// One subscription: periods, and what was true from when on.
    private mutating func live(_ id: String) {
        let ownership = pick([0, 0, 0, 0, 0, 0, 0, 1]) == 1 ? "FAMILY_SHARED" : "PURCHASED"
        var told: [(from: Int, words: String)] = []
        var (start, product) = (
            Self.start + Int.random(in: 0..<400 * 24 * 60, using: &random) * 60, pick(Self.products)
        )
        var (currency, count, isReplaced) = (pick(["USD", "EUR"]), 0, false)
        while count == 0 || isReplaced || start < Self.end && count < 10 {
            let turn = turn(count, product, at: start)
            let flag = ownership == "FAMILY_SHARED" ? "family_shared" : turn.offer == "trial" ? "trial" : ""
            told += turn.told.map { ($0.from, "'\($0.state)', '\($0.reason)', '\(product)', '\(flag)'") }
            if pick([0, 0, 0, 0, 1]) == 1 { currency = currency == "USD" ? "EUR" : "USD" }
            let price = turn.offer == "trial" ? "0" : pick(["NULL", "4990", "7990"])
            periods.append(
                "('\(id)', '\(product)', \(turn.since), \(turn.until), \(Self.sql(turn.cancelled)), \(turn.isUpgraded), "
                    + "\(Self.sql(turn.share)), '\(turn.offer)', '\(ownership)', \(price)::bigint, "
                    + (price == "NULL" ? "NULL)" : "'\(currency)')"))
            (start, product, isReplaced, count) = (turn.next, turn.nextProduct, turn.isUpgraded, count + 1)
        }
        for (index, one) in told.enumerated() {
            let until = index + 1 < told.count ? told[index + 1].from : nil
            spans.append("('\(id)', \(one.from), \(Self.sql(until)), \(one.words))")
        }
    }

    private static func sql(_ number: Int?) -> String { number.map(String.init) ?? "NULL::int" }

    private mutating func turn(_ count: Int, _ product: String, at start: Int) -> Turn {
        let isTrial = count == 0 && pick([0, 0, 1]) == 1
        let length = isTrial ? 7 : product == "yearly" ? 365 : 30
        var turn = Turn(product, since: start, length: length * Self.day)
        turn.offer = isTrial ? "trial" : count < 2 && pick([0, 1]) == 1 ? "intro" : ""
        switch pick([0, 1, 2, 3, 4, 5, 6, 6, 6, 6]) {
        case 0:
            let refunded = start + pick([1, 2, 5]) * Self.hour
            turn.cancelled = refunded
            turn.next = refunded + pick([2, 6, 30, 700]) * Self.hour
            turn.told.append((refunded, "revoked", "refund"))
        case 1:
            let refunded = start + pick([1, 2, 3, 4, 5, 6]) * Self.day
            (turn.cancelled, turn.share) = (refunded, pick([nil, 40_000, 100_000]))
            turn.next += pick([0, 3, 50]) * Self.day
            turn.told.append((refunded, "revoked", "refund"))
        case 2 where !isTrial:
            turn.isUpgraded = true
            turn.next = start + Int.random(in: 1...20, using: &random) * Self.day
            turn.nextProduct = product == "plus" ? "yearly" : "plus"
            // Apple may refund the replaced period in full, and date that at any time.
            let isRefunded = pick([true, false])
            turn.cancelled = isRefunded ? start + pick([1, 5, 15, 29, 45]) * Self.day : turn.next
            turn.share = isRefunded ? 100_000 : pick([nil, 60_000])
        case 3, 4:
            let failed = turn.until + pick([3, 9, 20, 6 * 24]) * Self.hour
            turn.told += [(turn.until, "grace_period", ""), (failed, "billing_retry", "")]
            turn.next = failed + pick([1, 6, 100, 900]) * Self.hour
        case 5:
            turn.told.append((turn.until, "expired", "voluntary"))
            turn.next += pick([1, 6, 100, 900]) * Self.hour
            turn.nextProduct = pick(Self.products)
        default:
            turn.nextProduct = pick([product, product, product, "monthly", "plus"])
        }
        return turn
    }
}
