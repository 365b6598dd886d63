import Crypto
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("A receipt that no customer sent takes nothing from those of customers")
struct OwnerlessTests {
    /// The receipt of a transaction that a notification named.
    @discardableResult
    private func notified(_ id: String, _ test: TestLedger) async throws -> ReceiptID {
        let upload = Upload(
            appID: test.app.id, customer: nil, receipt: Array(id.utf8), imported: false, form: .transactionID,
            transactionID: TransactionID(id))
        let receipt = try #require(try await test.ledger.intake.store([upload]).first).receiptID
        try await test.run(
            """
            INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for)
            VALUES (\(receipt), \(test.app.id), 'retry', now(), now()) ON CONFLICT DO NOTHING
            """)
        return receipt
    }

    /// Gives the app a key of the Server API, and has a worker take up what it can be asked about.
    private func storeKey(_ test: TestLedger, takingUp: Bool = true) async throws {
        try await test.ledger.apps.storeServerKey(
            try ConnectKey(pem: P256.Signing.PrivateKey().pemRepresentation, id: "K", issuer: "I"),
            of: test.app.bundleID)
        while takingUp, try await test.ledger.intake.takeUpOwnerless() {}
    }

    /// Takes the key away, and has a worker see to what it alone could ask about.
    private func removeKey(_ test: TestLedger) async throws {
        try await test.ledger.apps.removeServerKey(of: test.app.bundleID)
        while try await test.ledger.intake.giveUpKeyless() {}
    }

    /// Apple answers about two subscriptions.
    private func both(_ test: TestLedger, asOf day: Double) -> Finding {
        let first = Answer(from: test.at(-9), asOf: test.at(day))
        return together([
            first,
            first.but {
                ($0.subscription, $0.product, $0.from) = ("2000", "plus", test.at(-5))
            },
        ])
    }

    /// Each subscription with its poller.
    private func polled(_ test: TestLedger) async throws -> [String] {
        try await test.rows("SELECT original_transaction_id, polled_by FROM ledger.subscription ORDER BY 1")
    }

    @Test(
        "It polls only what no customer's receipt holds, its contents are the customer's, and it retires when nothing is left",
        arguments: [Showing.receipt, .signedTransaction, .unvouchedReceipt])
    func second(showing: Showing) async throws {
        try await withLedger { test in
            let kim = try await test.show(
                showing, "1000", by: "kim", Answer(from: test.at(-9), asOf: test.at(-3)).finding
            ).receiptID
            let pointed = try await notified("2000", test)
            try await test.check(pointed, both(test, asOf: -2), server: Showing.transactionID.read)
            #expect(try await polled(test) == ["1000 \(kim)", "2000 \(pointed)"])
            #expect(try await test.owner() == "kim")
            #expect(try await test.owner(of: "2000") == "kim", "kim sent a receipt with the other subscription")
            try await test.check(kim, both(test, asOf: -1), server: showing.read)
            #expect(try await polled(test) == ["1000 \(kim)", "2000 \(kim)"])
            #expect(try await test.rows("SELECT receipt_id FROM ledger.poll_schedule") == ["\(kim)"])
            #expect(try await test.violations() == [])
        }
    }

    @Test("A customer who comes later gets what it showed, and polls it")
    func later() async throws {
        try await withLedger { test in
            let pointed = try await notified("2000", test)
            try await test.check(pointed, both(test, asOf: -3), server: Showing.transactionID.read)
            #expect(try await test.owner() == "-")
            let kim = try await test.show(.signedTransaction, "1000", by: "kim", both(test, asOf: -2)).receiptID
            #expect(try await polled(test) == ["1000 \(kim)", "2000 \(kim)"])
            #expect(try await test.owner(of: "2000") == "kim")
            #expect(try await test.rows("SELECT receipt_id FROM ledger.poll_schedule") == ["\(kim)"])
            #expect(try await test.violations() == [])
        }
    }

    @Test("A customer's receipt that holds the same takes over, although neither answer of now names it")
    func replaced() async throws {
        try await withLedger { test in
            let kim = try await test.show(.receipt, "1000", by: "kim", both(test, asOf: -3)).receiptID
            let pointed = try await notified("2000", test)
            try await test.check(pointed, both(test, asOf: -2), server: Showing.transactionID.read)
            try await test.run("UPDATE ledger.subscription SET polled_by = \(pointed)")
            try await test.check(pointed, both(test, asOf: -1), server: Showing.transactionID.read)
            #expect(try await polled(test) == ["1000 \(kim)", "2000 \(kim)"])
            #expect(try await test.rows("SELECT receipt_id FROM ledger.poll_schedule") == ["\(kim)"])
            #expect(try await test.violations() == [])
        }
    }

    @Test(
        "Of several customers with the other contents, the newest uploader gets it, or the owner where the policy keeps it",
        arguments: OwnershipPolicy.allCases)
    func several(policy: OwnershipPolicy) async throws {
        try await withLedger(policy: policy) { test in
            let first = Answer(from: test.at(-9), asOf: test.at(-4)).finding
            try await test.show(.receipt, "a", by: "ann", first)
            try await test.show(.receipt, "b", by: "bob", first)
            try await test.show(.transactionID, "eve", by: "eve", first)
            try await test.check(
                try await notified("2000", test), both(test, asOf: -2), server: Showing.transactionID.read)
            #expect(try await test.owner(of: "2000") == (policy == .transfer ? "bob" : "ann"))
            #expect(try await test.owner() == (policy == .transfer ? "bob" : "ann"))
        }
    }

    @Test("What nobody owned gets its owner by the next answer, also if that is equal")
    func next() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let pointed = try await notified("p", test)
            func check(_ day: Double) async throws {
                guard case .verified(var evidence) = both(test, asOf: day),
                    case .verified(let bought) = test.bought([("p", "coins")], asOf: day)
                else { return }
                evidence.transactions += bought.transactions
                let settlement = Settlement(
                    claim: try await test.claim(pointed), finding: .verified(evidence), body: Array("{}".utf8),
                    latestReceipt: nil, fingerprint: Fingerprint(of: evidence, app: test.app),
                    server: Showing.transactionID.read)
                let batch = try await test.ledger.settlements.settleInFull([settlement])
                #expect(batch.failures.map(\.reason) == [])
            }
            try await check(-3)
            try await test.show(.receipt, "a", by: "ann", both(test, asOf: -2.5))
            #expect(try await test.owners() == "p -")
            #expect(
                try await test.rows("SELECT polled_by FROM ledger.purchase") == ["\(pointed)"],
                "the customer's receipt does not hold it")
            #expect(
                try await test.rows(
                    "SELECT fingerprint FROM ledger.poll_schedule WHERE receipt_id = \(pointed)") == ["-"],
                "the next answer is read in full")
            try await check(-2)
            #expect(try await test.owners() == "p ann")
            #expect(try await test.deliveries().contains("1 purchase due ann 100"))
            #expect(try await test.violations() == [])
        }
    }

    @Test("Without the server key what it alone polls is known by notification only, and another key takes it up")
    func keyless() async throws {
        try await withLedger { test in
            try await storeKey(test)
            let ann = try await test.show(
                .receipt, "a", by: "ann", Answer(from: test.at(-9), asOf: test.at(-4)).finding
            ).receiptID
            let pointed = try await notified("2000", test)
            try await test.check(pointed, both(test, asOf: -2), server: Showing.transactionID.read)
            #expect(try await polled(test) == ["1000 \(ann)", "2000 \(pointed)"])
            let waiting = try await notified("3000", test)
            try await removeKey(test)
            #expect(try await polled(test) == ["1000 \(ann)", "2000 -"])
            #expect(try await test.rows("SELECT receipt_id FROM ledger.poll_schedule") == ["\(ann)"])
            #expect(try await test.ledger.operations.status().unasked.map(\.subjects) == [1])
            #expect(try await test.violations() == [])
            try await storeKey(test)
            #expect(
                try await test.rows("SELECT receipt_id FROM ledger.poll_schedule ORDER BY 1")
                    == [ann, pointed].map(\.description).sorted(), "\(waiting) is asked about by its notification")
            #expect(try await test.ledger.operations.status().unasked.map(\.subjects) == [])
            try await test.check(pointed, both(test, asOf: -1), server: Showing.transactionID.read)
            #expect(try await polled(test) == ["1000 \(ann)", "2000 \(pointed)"])
        }
    }

    @Test("A new key takes up what notifications made in short transactions, and goes on where a killed worker was")
    func batches() async throws {
        try await withLedger { test in
            try await storeKey(test)
            var pointed: [ReceiptID] = []
            for number in 1...5 {
                pointed.append(try await notified("\(number)000", test))
                let answer = Answer(from: test.at(-9), asOf: test.at(-4)).but {
                    ($0.subscription, $0.line) = (OriginalTransactionID("\(number)000"), "line \(number)")
                }
                try await test.check(pointed[number - 1], answer.finding, server: Showing.transactionID.read)
            }
            let ann = try await test.show(
                .receipt, "a", by: "ann",
                Answer(from: test.at(-9), asOf: test.at(-3)).but { $0.subscription = "9000" }.finding
            ).receiptID
            try await removeKey(test)
            let scheduled = "SELECT receipt_id FROM ledger.poll_schedule ORDER BY receipt_id"
            #expect(try await test.rows(scheduled) == ["\(ann)"])
            try await storeKey(test, takingUp: false)
            #expect(try await test.rows(scheduled) == ["\(ann)"], "storing the key is one short transaction")
            // Each round is a transaction of its own, and what a worker did not commit is done by the next one.
            for taken in [2, 4, 5] {
                #expect(try await test.ledger.intake.takeUpOwnerless(atMost: 2))
                #expect(try await test.rows(scheduled) == (pointed.prefix(taken) + [ann]).map(\.description))
            }
            #expect(try await !test.ledger.intake.takeUpOwnerless(atMost: 2))
            #expect(try await test.ledger.operations.status().unasked.map(\.subjects) == [])
            try await storeKey(test, takingUp: false)
            #expect(try await test.ledger.intake.takeUpOwnerless(atMost: 2), "another key begins anew")
        }
    }

    @Test(
        "The roles of workers and servers may take up what notifications made",
        arguments: ["perennial_worker", "perennial_api"])
    func role(_ role: String) async throws {
        try await withNewLedger { test in
            try await storeKey(test, takingUp: false)
            try await test.ledger.operations.grantRoles()
            let database = Database(
                DatabaseConfiguration(connectionString: test.connectionString + " options='-c role=\(role)'")
            ) { print("as \(role): \($0)") }
            let ledger = SubscriptionLedger(database: database)
            #expect(try await ledger.intake.takeUpOwnerless())
            #expect(try await !ledger.intake.takeUpOwnerless())
            await database.close()
        }
    }

    @Test("A check that is under way when the key goes leaves nothing that is polled and never asked about")
    func underWay() async throws {
        try await withLedger { test in
            try await storeKey(test)
            let pointed = try await notified("2000", test)
            try await test.check(pointed, both(test, asOf: -3), server: Showing.transactionID.read)
            let claim = try await test.claim(pointed)
            try await removeKey(test)
            #expect(try await polled(test) == ["1000 -", "2000 -"])
            try await test.settle(claim, both(test, asOf: -2), server: Showing.transactionID.read)
            // A notification that was being stored when the key went.
            try await notified("3000", test)
            while try await test.ledger.intake.giveUpKeyless() {}
            #expect(try await polled(test) == ["1000 -", "2000 -"])
            #expect(try await test.rows("SELECT receipt_id FROM ledger.poll_schedule") == [])
            #expect(try await test.ledger.operations.status().unasked.map(\.subjects) == [2])
            #expect(try await test.violations() == [])
        }
    }

    @Test("What only transactions of customers show is named once the key is gone")
    func customers() async throws {
        try await withLedger { test in
            try await storeKey(test)
            let answer = Answer(from: test.at(-9), asOf: test.at(-4))
            try await test.show(.receipt, "a", by: "ann", answer.finding)
            try await test.show(.signedTransaction, "2000", by: "kim", answer.but { $0.subscription = "2000" }.finding)
            _ = try await test.ledger.intake.store([Showing.transactionID.upload("3000", by: "eve", of: test.app)])
            #expect(try await test.ledger.operations.status().unasked.map(\.subjects) == [])
            try await removeKey(test)
            #expect(try await test.ledger.operations.status().unasked.map(\.subjects) == [2])
            #expect(
                try await test.rows("SELECT original_transaction_id FROM ledger.unasked ORDER BY 1") == [
                    "2000", "3000",
                ])
            #expect(try await test.violations() == [])
        }
    }

    @Test("Checks that fail for want of a key are no violation: what needs the key too cannot go on in their place")
    func neither() async throws {
        try await withLedger { test in
            try await storeKey(test)
            let answer = Answer(from: test.at(-9), asOf: test.at(-4)).but { $0.subscription = "2000" }
            let pointed = try await notified("2000", test)
            try await test.check(pointed, answer.finding, server: Showing.transactionID.read)
            try await test.show(.signedTransaction, "2000", by: "kim", answer.finding)
            try await removeKey(test)
            try await test.run("UPDATE ledger.poll_schedule SET attempts = 7, backs_off = true")
            #expect(try await test.violations() == [])
            try await storeKey(test, takingUp: false)
            let found = try await test.violations([.coverage])
            #expect(found.map { $0.detail.contains("another one can") } == [true])
        }
    }

    @Test("One that a notification made is scheduled while that waits for an answer and nothing else polls its subject")
    func awaited() async throws {
        try await withLedger { test in
            try await storeKey(test)
            try await test.show(.receipt, "a", by: "ann", Answer(from: test.at(-9), asOf: test.at(-4)).finding)
            let pointed = try await notified("4000", test)
            try await test.run(
                """
                INSERT INTO ledger.notification (app_id, received_at, version, kind, environment, original_transaction_id,
                    transaction_id, signed_at, effect, texts)
                VALUES (\(test.app.id), now(), 2, 'SUBSCRIBED', 'Production', '9000', '4000', now(), 'asked', '')
                """)
            #expect(try await test.violations([.scheduled]) == [])
            try await test.run("DELETE FROM ledger.poll_schedule WHERE receipt_id = \(pointed)")
            #expect(try await test.violations([.scheduled]).map(\.receiptID) == [pointed])
            try await test.run("UPDATE ledger.notification SET original_transaction_id = '1000'")
            #expect(try await test.violations([.scheduled]) == [], "ann's receipt is asked about it")
        }
    }

    @Test("One whose last answer was none leaves the schedule once another receipt polls what it polled")
    func unanswered() async throws {
        try await withLedger { test in
            try await storeKey(test)
            let pointed = try await notified("2000", test)
            let never = try await notified("3000", test)
            try await test.check(pointed, both(test, asOf: -3), server: Showing.transactionID.read)
            try await test.check(pointed, outage, server: Showing.transactionID.read)
            #expect(
                try await test.text("SELECT outcome FROM ledger.receipt WHERE receipt_id = \(pointed)")
                    == "indeterminate")
            let kim = try await test.show(.signedTransaction, "1000", by: "kim", both(test, asOf: -2)).receiptID
            try await test.run("DELETE FROM ledger.poll_schedule WHERE receipt_id = \(never)")
            #expect(try await test.rows("SELECT receipt_id FROM ledger.poll_schedule") == ["\(kim)"])
            #expect(try await test.violations() == [])
            try await test.run(
                "UPDATE ledger.subscription SET polled_by = \(pointed) WHERE original_transaction_id = '2000'")
            #expect(try await test.violations([.scheduled]).map(\.receiptID) == [pointed])
        }
    }
}
