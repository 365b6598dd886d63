import Hummingbird
import HummingbirdTesting
import Postgres
import Subscriptions
import Testing
import Tracking

@testable import Server

@Suite("Pages of cohorts, trials and customers show what the summaries have") struct CohortPageTests {
    /// Six customers: five pay since the month before last, one of them stopped after 35 days; one has a trial alone.
    private static let shop = """
        INSERT INTO ledger.customer (app_id, name)
        SELECT app_id, 'c' || n FROM ledger.app, generate_series(1, 6) n;
        INSERT INTO ledger.subscription (app_id, environment, original_transaction_id, version, as_of, checked_at, recorded_at,
                                         expires_at)
        SELECT app_id, 'Production', '20' || n, 1, now(), now(), now(), now() + n * interval '1 day'
        FROM ledger.app, generate_series(1, 6) n;
        INSERT INTO ledger.ownership (subscription_id, customer_id, valid, known)
        SELECT s.subscription_id, c.customer_id, tstzrange(NULL, NULL), tstzrange(now(), NULL)
        FROM ledger.subscription s JOIN ledger.customer c ON '20' || substr(c.name, 2) = s.original_transaction_id;
        INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, version)
        SELECT subscription_id, tstzrange('2020-01-01', NULL), tstzrange(now(), NULL),
               (CASE original_transaction_id WHEN '201' THEN 'expired' ELSE 'active' END)::ledger.state,
               (CASE original_transaction_id WHEN '201' THEN 'voluntary' END)::ledger.reason,
               original_transaction_id <> '201', CASE original_transaction_id WHEN '206' THEN 'yearly' ELSE 'monthly' END, 1
        FROM ledger.subscription;
        INSERT INTO ledger.summarised SELECT subscription_id, now(), NULL FROM ledger.subscription;
        INSERT INTO ledger.summary_paying (subscription_id, charge_id, product_id, paying_from, paying_until, price_basis)
        SELECT subscription_id, 1, 'monthly', began.at, CASE original_transaction_id
            WHEN '201' THEN began.at + interval '35 days' ELSE 'infinity' END, 'catalog'
        FROM ledger.subscription, (SELECT date_trunc('month', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'
                                          - interval '3 months' AS at) began
        WHERE original_transaction_id <> '206';
        INSERT INTO ledger.summary_revenue (subscription_id, charge_id, kind, occurred_at, product_id, purchased_at,
            amount_milliunits, currency, price_basis, commission_percent, commission_reason)
        SELECT subscription_id, 1, 'charge', paying_from, product_id, paying_from, 9990 * (1 + subscription_id % 2), 'EUR',
               'catalog', 30, 'standard'
        FROM ledger.summary_paying
        """

    private func signedIn(_ body: @escaping @Sendable (Browser) async throws -> Void) async throws {
        try await AdminWorld.with { world in
            try await world.database.transaction { try $0.script(Self.shop) }
            try await world.serving { browser in
                try await browser.signIn(world.secret)
                try await body(browser)
            }
        }
    }

    @Test("Retention says how many still paid on each monthly anniversary")
    func retention() async throws {
        try await signedIn { browser in
            let page = try await browser.get("/admin/retention").text
            expectAccessible(page, "retention")
            #expect(page.contains("<td class=\"number\">5</td><td class=\"number shade-10\">100.0 %</td>"), "\(page)")
            #expect(page.contains("<td class=\"number shade-8\">80.0 %</td>"))
            #expect(page.contains("<th scope=\"col\" class=\"number\">Subscriptions</th>"))
            let other = try await browser.get("/admin/retention?environment=Sandbox").text
            #expect(other.contains("No subscription began to pay within twelve months."))
        }
    }

    @Test("Cohorts say what they brought so far and who of them pays")
    func cohorts() async throws {
        try await signedIn { browser in
            let page = try await browser.get("/admin/cohorts?app=com.example.app").text
            expectAccessible(page, "cohorts")
            let cells = ["<td>EUR</td>", "<td class=\"number\">5</td>", "<td class=\"number\">4</td>", "80.0 %"]
            #expect(cells.allSatisfy(page.contains), "\(page)")
            #expect(page.contains("79.92") || page.contains("69.93"))
        }
    }

    @Test("Trials are shown by month") func trials() async throws {
        try await signedIn { browser in
            let page = try await browser.get("/admin/trials").text
            expectAccessible(page, "trials")
            #expect(page.contains("<caption>Trials by month</caption>") && page.contains("Conversion"))
            #expect(page.matches(of: #/<th scope="row">\d{4}-\d{2} so far<\/th>/#).count == 1)
        }
    }

    @Test(
        "The list of customers is filtered by state, product and spending",
        arguments: [
            ("", ["c1", "c2", "c3", "c4", "c5", "c6"]), ("state=expired", ["c1"]), ("product=yearly", ["c6"]),
            ("state=active&product=monthly", ["c2", "c3", "c4", "c5"]), ("state=revoked", []),
            ("spent=1", ["c1", "c2", "c3", "c4", "c5"]), ("spent=100", []), ("after=c4", ["c5", "c6"]),
        ])
    func customers(_ query: String, _ names: [String]) async throws {
        try await signedIn { browser in
            let page = try await browser.get("/admin/customers?app=com.example.app&\(query)").text
            expectAccessible(page, query)
            let found = page.matches(of: #/&amp;id=(?<name>c\d)">/#).map { String($0.output.name) }
            #expect(found == names, "\(query): \(page)")
            #expect(names.isEmpty == page.contains("No customer fits."))
        }
    }

    @Test("A page of the list goes on where the one before ended")
    func pages() async throws {
        try await AdminWorld.with { world in
            try await world.database.transaction { try $0.script(Self.shop) }
            var (names, after): ([String], String?) = ([], "")
            while let from = after {
                let page = try await world.ledger.admin.customers(
                    of: AdminWorld.app, CustomerFilter(state: .active), after: from, limit: 2)
                #expect(page.customers.count <= 2)
                names += page.customers.map(\.customer)
                after = page.next
            }
            #expect(names == ["c2", "c3", "c4", "c5", "c6"])
        }
    }
}
