import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// A ledger with roles, a checked receipt and a feed. The tests that use it read, and try in vain to write.
private let settled = OncePerSuite<TestLedger> { lend in
    try await withNewLedger { test in
        try await test.ledger.operations.grantRoles()
        try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
        try await test.sellDeliverables()
        try await test.buys("p")
        try await test.acknowledgeAll()
        _ = try await test.ledger.orders.place(
            OrderRequest(customer: "ann", productID: "coins"), of: test.app.bundleID, requestKey: "k")
        try await test.ledger.feed.sequence()
        try await lend(test)
    }
}

@Suite("Each role may do what it needs, and no more", settled)
struct RoleTests {
    @Test("The script may run again and again, and from two databases at once")
    func again() async throws {
        try await withNewLedger { one in
            try await withNewLedger { other in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for ledger in [one.ledger, other.ledger] {
                        group.addTask { for _ in 0..<5 { try await ledger.operations.grantRoles() } }
                    }
                    try await group.waitForAll()
                }
                #expect(
                    try await one.text("SELECT count(*) FROM pg_roles WHERE rolname LIKE 'perennial\\_%'") >= "4")
            }
        }
    }

    @Test("The report role reads every view, calls the lookups, and sees nothing of the ledger")
    func report() async throws {
        try await settled.use { test in
            let views = try await test.rows("SELECT viewname FROM pg_views WHERE schemaname = 'perennial' ORDER BY 1")
            let promised = [
                "entitlement_now", "event_log", "revenue_event", "subscription_now", "order_log", "delivery_log",
                "credit_balance",
            ]
            #expect(views.contains("purchase_now") && promised.allSatisfy(views.contains))
            let tables = try await test.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'ledger'")
            let account = try await test.text("SELECT session_user::text")
            #expect(Set(["purchase_order", "order_change", "order_request", "delivery"]).isSubset(of: tables))
            try await acting(as: "perennial_report", on: test) { _, database in
                for view in views {
                    let rows = try await database.query(.test("SELECT * FROM perennial.\(view)"))
                    #expect(!rows.isEmpty || !promised.contains(view), "\(view) is empty")
                }
                let said = try await database.query(
                    .test("SELECT granted FROM perennial.entitled_at('com.example.app', 'ann', 'monthly', now())"))
                #expect(try said.first?.bool("granted") == true)
                for table in tables {
                    let error = await #expect(throws: DatabaseError.self, "\(table) can be read") {
                        _ = try await database.query(.test("SELECT 1 AS one FROM ledger.\(table)"))
                    }
                    #expect(error?.sqlState == "42501")
                    let message = try #require(error).message
                    for advice in [
                        "(SQLSTATE 42501); \(account) lacks this right. `perennial migrate` gives the roles",
                        "perennial_worker for `worker`", "perennial_api for `serve`", "perennial_report for `report`",
                    ] {
                        #expect(message.contains(advice))
                    }
                }
            }
        }
    }

    private static let processes = ["perennial_worker", "perennial_api"]

    @Test("Worker and server can upload, claim, settle, end holds and feed", arguments: processes)
    func settle(role: String) async throws {
        try await withNewLedger { test in
            try await test.ledger.operations.grantRoles()
            try await acting(as: role, on: test) { ledger, database in
                let own = TestLedger(
                    ledger: ledger, database: database, connectionString: test.connectionString, app: test.app,
                    worker: try await ledger.claims.startWorker(host: "role", process: 1), now: test.now)
                try await ledger.operations.requireMigrated()
                _ = try await ledger.claims.takeBudget([(app: test.app, calls: 1)])
                let receipt = try await own.upload("a")
                // A row without line item that later gets one is the same period: one of the two is deleted.
                var unnumbered = Answer(from: test.at(-9), asOf: test.at(-3)).evidence
                var other = unnumbered.transactions[0]
                (other.webOrderLineItemID, other.transactionID) = (nil, "loose")
                other.purchasedAt = other.purchasedAt + .seconds(1)
                unnumbered.transactions.append(other)
                try await own.check(receipt, .verified(unnumbered))
                var joined = Answer(from: test.at(-9), asOf: test.at(-2)).evidence
                joined.transactions[0].transactionID = "loose"
                try await own.check(receipt, .verified(joined))
                try await own.check(receipt, purchase("p", at: test.at(-9), asOf: test.at(-1)))
                try await own.upload("a", by: "bob")
                try await own.check(receipt, Answer(from: test.at(-9), asOf: test.at(-1)))
                try await own.check(receipt, rejected(.wrongSecret, status: 21004))
                try await ledger.apps.noteAcceptedSecret(of: own.app, in: .production, at: test.at(-1))
                try await ledger.apps.noteRefusedSecret(
                    of: own.app, in: .production, about: [], at: test.at(0))
                for trial in try await ledger.apps.takeSecretTrials(every: 60) {
                    try await ledger.apps.settle(trial, of: own.app, .accepted, isProof: true, every: 60)
                }
                try await ledger.intake.countRefused(["com.other": 1], of: own.app)
                let old = try await own.upload("old")
                try await own.check(old, Answer(from: test.at(-70), asOf: test.at(-41)).but { $0.subscription = "old" })
                #expect(try await endAllowances(ledger) == 1)
                try await own.check(old, rejected())
                try await ledger.operations.watchCanaries()
                let placed = try await ledger.feed.sequence() ?? 0
                #expect(placed > 0)
                try await ledger.operations.addObservationMonths()
                try await ledger.claims.heartbeat(own.worker, stopped: true)
                _ = try await ledger.operations.status()
                #expect(
                    try await ledger.customers.entitlements(app: "com.example.app", customer: "bob").isEmpty == false)
                try await own.run("UPDATE ledger.current_entitlements SET catalog_changed_at = '-infinity'")
                #expect(try await ledger.customers.renewEntitlements() == false)
                let outdated = "SELECT count(*) FROM ledger.current_entitlements WHERE catalog_changed_at = '-infinity'"
                #expect(try await own.text(outdated) == "0")
            }
            #expect(try await test.owner() == "bob")
            #expect(
                try await test.text("SELECT periods FROM ledger.subscription WHERE original_transaction_id = '1000'")
                    == "1")
            try await test.expectSound()
        }
    }

    /// What the role for reports may not do: it writes nothing, and calls no function that reads behind the views.
    /// `ledger.entitlements`, which `perennial.entitlement_now` calls for it, answers nothing that this view does not.
    private static let forbiddenToRead = [
        "INSERT INTO ledger.customer (app_id, name) VALUES (1, 'x')", "DELETE FROM ledger.event",
        "UPDATE ledger.subscription SET version = 1", "UPDATE ledger.audit SET detail = '{}'",
        "TRUNCATE ledger.receipt",
        "DELETE FROM perennial.entitlement_now", "UPDATE perennial.subscription_now SET state = 'active'",
        "DELETE FROM perennial.audit_log", "SELECT nextval('ledger.lease_token_seq')",
        "SELECT * FROM ledger.compute_entitlements(ARRAY[1]::bigint[])",
        "SELECT * FROM ledger.entitlement_sources(ARRAY[1]::bigint[], NULL, NULL)",
        "SELECT ledger.add_observation_month(now())", "SELECT ledger.drop_empty_observation_months(now())",
        "SELECT * FROM ledger.deliverables(ARRAY[1]::bigint[], '{}')",
        "SELECT ledger.store_turns(ARRAY[1]::bigint[], '{}')",
        "DELETE FROM perennial.order_log", "DELETE FROM ledger.due_delivery",
    ]

    @Test("The role for reports writes nothing")
    func readsOnly() async throws {
        try await settled.use { test in
            try await acting(as: "perennial_report", on: test) { _, database in
                for sql in Self.forbiddenToRead {
                    let error = await #expect(throws: DatabaseError.self, "report may \(sql)") {
                        try await database.transaction { try $0.script(sql) }
                    }
                    // What is no table cannot be written to at all.
                    #expect(["42501", "55000"].contains(error?.sqlState), "\(sql): \(error?.sqlState ?? "")")
                }
            }
        }
    }

    @Test(
        "No role but the owner of the database may change the structure",
        arguments: ["perennial_worker", "perennial_api", "perennial_report", "perennial_owner"])
    func structure(role: String) async throws {
        try await settled.use { test in
            try await acting(as: role, on: test) { _, database in
                for sql in [
                    "DROP TABLE ledger.event", "CREATE TABLE ledger.extra (x int)",
                    "CREATE TABLE perennial.extra (x int)",
                ] {
                    let error = await #expect(throws: DatabaseError.self) {
                        try await database.transaction { try $0.script(sql) }
                    }
                    #expect(error?.sqlState == "42501", "\(sql)")
                }
            }
        }
    }

    /// What no process may do, whatever a request says. PostgreSQL refuses each statement for want of a privilege.
    private static let forbidden = [
        "UPDATE ledger.subscription_span SET product_id = 'gold'",
        "UPDATE ledger.subscription_span SET valid = 'empty'",
        "DELETE FROM ledger.subscription_span", "UPDATE ledger.ownership SET customer_id = 1",
        "DELETE FROM ledger.ownership", "UPDATE ledger.event SET occurred_at = now()", "DELETE FROM ledger.event",
        "UPDATE ledger.event_feed SET position = 7", "DELETE FROM ledger.event_feed", "DELETE FROM ledger.observation",
        "DELETE FROM ledger.subscription", "DELETE FROM ledger.customer", "DELETE FROM ledger.receipt",
        "UPDATE ledger.app SET sealed_secret = NULL", "DELETE FROM ledger.app", "DELETE FROM ledger.customer_merge",
        "INSERT INTO ledger.api_key (digest, scope) VALUES (sha256('x'), 'admin')",
        "UPDATE ledger.api_key SET scope = 'admin'", "UPDATE ledger.catalog_grant SET entitlement = 'gold'",
        "UPDATE ledger.audit SET os_user = 'nobody'", "DELETE FROM ledger.audit",
        "UPDATE ledger.feed SET feed_id = DEFAULT", "UPDATE ledger.feed SET place = 'here'",
        "INSERT INTO ledger.migration (name, digest) VALUES ('x', 'x')",
        "UPDATE ledger.manual_grant SET valid = 'empty'", "DELETE FROM ledger.current_entitlements",
        "DELETE FROM ledger.purchase_order", "DELETE FROM ledger.delivery", "DELETE FROM ledger.acknowledgement",
        "UPDATE ledger.acknowledgement SET acknowledged_by = ''", "DELETE FROM ledger.order_change",
        "INSERT INTO ledger.order_change VALUES (gen_random_uuid(), 1, 'paid', 'token', NULL, now())",
        "UPDATE ledger.order_change SET cause = 'x'", "UPDATE ledger.offer_key SET key_id = 'mine'",
        "DELETE FROM ledger.offer_key", "INSERT INTO ledger.offer_key VALUES (1, 'mine', NULL, 'x')",
        "DELETE FROM ledger.manual_grant", "UPDATE ledger.customer_merge SET into_id = 1",
    ]

    /// What only the server may do: a caller with a session is an administrator.
    private static let forbiddenToWorkers = [
        "UPDATE ledger.manual_grant SET known = known", "SELECT digest FROM ledger.api_key",
        "DELETE FROM ledger.upload", "INSERT INTO ledger.customer_merge VALUES (1, 2, '[now,)')",
        "INSERT INTO ledger.grant_request VALUES (1, 'x', 'x', 1, now())",
        "INSERT INTO ledger.support_call (app_id, environment, kind, subject) VALUES (1, 'Production', 'extend', '1')",
        "SELECT sealed_key FROM ledger.offer_key", "SELECT digest FROM ledger.admin_session",
        "DELETE FROM ledger.admin_session", "UPDATE ledger.admin_session SET expires_at = 'infinity'",
        "INSERT INTO ledger.admin_session (digest, key_id, expires_at) VALUES (sha256('x'), 1, 'infinity')",
    ]

    @Test("What worker and server must not do they cannot", arguments: processes)
    func forbidden(role: String) async throws {
        try await settled.use { test in
            try await acting(as: role, on: test) { _, database in
                for sql in Self.forbidden + (role == "perennial_worker" ? Self.forbiddenToWorkers : []) {
                    let error = await #expect(throws: DatabaseError.self, "\(role) may \(sql)") {
                        try await database.transaction { try $0.script(sql) }
                    }
                    #expect(error?.sqlState == "42501", "\(sql)")
                }
            }
        }
    }

    @Test("Worker and server write the new id of a restored feed down", arguments: processes)
    func restoredFeed(role: String) async throws {
        try await withNewLedger { test in
            try await test.ledger.operations.grantRoles()
            try await test.run(
                """
                ALTER TABLE ledger.feed DISABLE TRIGGER renewed_elsewhere;
                UPDATE ledger.feed SET place = 'elsewhere';
                ALTER TABLE ledger.feed ENABLE TRIGGER renewed_elsewhere;
                """)
            let reported = try await acting(as: "perennial_report", on: test) { _, database in
                try await database.query(.test("SELECT feed_id::text AS id FROM perennial.feed_now")).first?.text("id")
            }
            try await acting(as: role, on: test) { ledger, _ in
                #expect(try await ledger.feed.head().feed == reported)
                let renewal = try await ledger.feed.checkPlace()
                #expect(renewal?.feed == reported)
                #expect(try await ledger.feed.head().feed == reported)
                #expect(try await ledger.operations.status().feedID == reported)
            }
            try await test.expectRows("SELECT actor, action FROM perennial.audit_log", [["perennial", "feed.renewed"]])
        }
    }

    @Test("Privileges of an older release are revoked")
    func narrowed() async throws {
        try await withNewLedger { test in
            try await test.ledger.operations.grantRoles()
            try await test.run(
                "GRANT UPDATE ON ledger.event, ledger.ownership, ledger.subscription_span TO perennial_api")
            try await test.ledger.operations.grantRoles()
            try await test.run("GRANT SELECT, INSERT, UPDATE, DELETE ON ledger.admin_session TO perennial_worker")
            try await test.ledger.operations.grantRoles()
            try await acting(as: "perennial_worker", on: test) { _, database in
                for sql in Self.forbiddenToWorkers {
                    let error = await #expect(throws: DatabaseError.self, "\(sql)") {
                        try await database.transaction { try $0.script(sql) }
                    }
                    #expect(error?.sqlState == "42501")
                }
            }
            try await acting(as: "perennial_api", on: test) { _, database in
                for table in [
                    "event SET detail = '{}'", "ownership SET cause = 'merge'", "subscription_span SET version = 1",
                ] {
                    let error = await #expect(throws: DatabaseError.self) {
                        try await database.transaction { try $0.script("UPDATE ledger.\(table)") }
                    }
                    #expect(error?.sqlState == "42501")
                }
            }
        }
    }

    @Test("The owner role grants, merges, assigns and erases")
    func owner() async throws {
        try await withNewLedger { test in
            try await test.ledger.operations.grantRoles()
            try await test.sellDeliverables()
            _ = try await test.ledger.orders.place(
                OrderRequest(customer: "bob", productID: "coins"), of: test.app.bundleID, requestKey: "k")
            try await test.check(try await test.upload("a", by: "anon"), Answer(from: test.at(-9), asOf: test.at(-1)))
            try await acting(as: "perennial_owner", on: test) { plain, _ in
                let (ledger, app) = (plain.acting(as: .user("kim")), test.app.bundleID)
                let decision = try ManualDecision(by: "kim", because: "a test")
                _ = try await ledger.customers.grant("pro", to: "anon", of: app, until: nil, deciding: decision)
                _ = try await ledger.customers.merge("anon", into: "ann", of: app, deciding: decision)
                _ = try await ledger.customers.revokeGrant(of: "pro", from: "ann", of: app, deciding: decision)
                #expect(try await ledger.customers.assign("1000", to: "bob", of: app, deciding: decision) == 1)
                #expect(try await ledger.customers.export("bob", of: app).ownerships.count == 1)
                #expect(try await ledger.customers.export("bob", of: app).purchases.orders.count == 1)
                #expect(try await ledger.customers.erase("bob", of: app, deciding: decision).things == 1)
                #expect(try await ledger.feed.renew() != nil)
            }
            #expect(
                try await test.rows("SELECT action FROM perennial.audit_log ORDER BY audit_id") == [
                    "grant.given", "customer.merged", "grant.revoked", "customer.assigned", "customer.erased",
                    "feed.renewed",
                ])
        }
    }
}

/// A ledger on connections that act as a role.
func acting<R>(
    as role: String, on test: TestLedger, _ body: (SubscriptionLedger, Database) async throws -> R
) async throws -> R {
    let database = Database(
        DatabaseConfiguration(connectionString: test.connectionString + " options='-c role=\(role)'")
    ) { print("as \(role): \($0)") }
    let seal = try SecretSeal(masterKey: TestLedger.seal)
    do {
        let result = try await body(SubscriptionLedger(database: database, seal: seal), database)
        await database.close()
        return result
    } catch {
        await database.close()
        throw error
    }
}

@Suite("Roles may order and deliver as they need")
struct RolePurchaseTests {
    @Test(
        "Worker and server place orders, deliver, acknowledge, skip and expire",
        arguments: ["perennial_worker", "perennial_api"])
    func deliver(role: String) async throws {
        try await withNewLedger { test in
            try await test.ledger.operations.grantRoles()
            try await test.sellDeliverables()
            try await acting(as: role, on: test) { ledger, database in
                let own = TestLedger(
                    ledger: ledger, database: database, connectionString: test.connectionString, app: test.app,
                    worker: try await ledger.claims.startWorker(host: "role", process: 1), now: test.now)
                _ = try await ledger.orders.place(
                    OrderRequest(customer: "ann", productID: "coins"), of: test.app.bundleID, requestKey: "k")
                try await own.run("UPDATE ledger.purchase_order SET created_at = created_at - interval '3 days'")
                for id in ["p", "q"] { try await own.buys(id, quantity: id == "p" ? 1 : 2) }
                let skipped = try await ledger.acting(as: .user("kim")).deliveries.skip(
                    2, of: test.app.bundleID, because: "a test")
                #expect(skipped.isFirst)
                try await own.acknowledgeAll()
                try await own.buys("p", asOf: -0.8, refunded: -0.9)
                try await ledger.orders.expire()
                #expect(
                    try await own.deliveries() == [
                        "1 purchase acknowledged ann 100", "1 purchase a test ann 200", "2 refund due ann 100",
                    ])
            }
            try await test.expectRows(
                "SELECT state, cause FROM perennial.order_log ORDER BY at DESC LIMIT 1",
                [["delivered", "acknowledged"]])
            try await test.expectSound()
        }
    }
}
