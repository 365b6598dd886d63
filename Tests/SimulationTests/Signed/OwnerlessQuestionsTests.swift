import Crypto
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("What a notification asks of a receipt that no customer sent goes on when a customer's receipt polls")
struct OwnerlessQuestionsTests {
    /// An app with a key of the Server API.
    private func withKey(_ body: @escaping @Sendable (SignedApp) async throws -> Void) async throws {
        try await SignedApp.with { app in
            try await app.tracker.ledger.apps.storeServerKey(
                try ConnectKey(
                    pem: P256.Signing.PrivateKey().pemRepresentation, id: "K1",
                    issuer: "57246542-96fe-1a63-e053-0824d011072a"), of: ServedLedger.app)
            let address = try await app.tracker.ledger.apps.openNotifications(of: ServedLedger.app)
            let keyed = try #require(try await app.tracker.ledger.apps.notifiedApp(at: address))
            try await body(
                SignedApp(
                    served: app.served, tracker: app.tracker, authority: app.authority, app: keyed, store: app.store,
                    receipt: app.receipt, start: app.start))
        }
    }

    private func expectNoViolations(_ app: SignedApp) async throws {
        try await app.tracker.ledger.operations.expectNoViolations(
            otherwise: VerifyTerms(leaseSeconds: 60, speedup: 1))
    }

    /// The receipt that a notification made.
    private func ownerless(_ app: SignedApp) async throws -> ReceiptID {
        let ids = try await app.rows(
            "SELECT receipt_id::text AS line FROM ledger.receipt WHERE form = 'transaction_id' ORDER BY 1")
        return ReceiptID(try #require(ids.first.flatMap { Int64($0) }))
    }

    /// The follow-ups of a receipt, and the seconds until its next check.
    private func schedule(_ app: SignedApp, _ receipt: ReceiptID) async throws -> [String] {
        try await app.rows(
            """
            SELECT concat_ws(' ', follow_ups, round(extract(epoch FROM due_at - now()))) AS line
            FROM ledger.poll_schedule WHERE receipt_id = \(receipt)
            """)
    }

    /// Has the Server API answer about a receipt on a day, with rows of a history.
    private func serverAnswer(_ app: SignedApp, about receipt: ReceiptID, on day: Double, _ rows: [TransactionRow])
        async throws
    {
        let worker = try await app.tracker.ledger.claims.startWorker(host: "test", process: 1)
        let claim = try await app.tracker.ledger.claims.claim(receipt, for: worker, leaseSeconds: 60)
        let evidence = Evidence(
            environment: .production, bundleID: ServedLedger.app, asOf: Instant(milliseconds: app.at(day)),
            transactions: rows, confirmsOtherPurchases: true)
        let settlement = Settlement(
            claim: claim, finding: .verified(evidence), body: Array("{}".utf8), latestReceipt: nil,
            server: ServerRead(beginsAtStart: true, revision: "r", goesOn: false))
        let batch = try await app.tracker.ledger.settlements.settleInFull([settlement])
        #expect(batch.failures.map(\.reason) == [])
    }

    /// A week of the subscription `s1` in a history.
    private func week(_ app: SignedApp, readOn day: Double) -> TransactionRow {
        var row = TransactionRow(
            path: "history[0]", source: .signedText, asOf: Instant(milliseconds: app.at(day)), transactionID: "1",
            originalTransactionID: "s1", productID: "weekly", quantity: 1,
            purchasedAt: Instant(milliseconds: app.at(28)))
        row.expiresAt = Instant(milliseconds: app.at(35))
        row.webOrderLineItemID = "w1"
        return row
    }

    /// The customer turned renewal off.
    private func turnedOff(_ app: SignedApp) throws -> String {
        try app.notification(
            "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED",
            transaction: app.transaction("1", from: 28, signedOn: 28.2),
            renewal: app.renewal(ends: 35, signedOn: 28.2, renews: false), signedOn: 28.2)
    }

    @Test(
        "Follow-ups go on with the customer's receipt, whether or not the other one was answered",
        arguments: [false, true])
    func handedOver(isAnswered: Bool) async throws {
        try await withKey { app in
            #expect(try await app.post(turnedOff(app)) == "asked")
            let pointed = try await ownerless(app)
            if isAnswered {
                try await serverAnswer(app, about: pointed, on: 28.3, [week(app, readOn: 28.3)])
                #expect(try await schedule(app, pointed) == ["3 60"])
            } else {
                _ = try await app.tracker.check(pointed)
                #expect(try await schedule(app, pointed).first?.hasPrefix("4 ") == true)
            }
            #expect(try await app.effects() == ["asked"])
            let week = app.transaction("1", from: 28, signedOn: 28.1)
            try await app.answer(on: 28.4, [week])
            #expect(try await app.effects() == ["asked"], "follow-ups are still to come")
            #expect(try await schedule(app, app.receipt) == [isAnswered ? "3 60" : "4 60"])
            try await expectNoViolations(app)
            try await app.answer(on: 28.5, [week])
            #expect(try await schedule(app, app.receipt) == [isAnswered ? "2 300" : "3 60"])
            try await app.answer(on: 28.6, [week], renews: false)
            #expect(try await app.effects() == ["applied"])
            #expect(try await schedule(app, app.receipt).first?.hasPrefix("0 ") == true)
            try await expectNoViolations(app)
        }
    }

    /// Coins, as a signed transaction states them on a day.
    private func coins(_ app: SignedApp, signedOn day: Double, refunded: Bool = false) -> [String: Any] {
        var claims = app.transaction(
            "c1", from: 20, signedOn: day,
            [
                "originalTransactionId": "c1", "productId": "coins", "type": "Consumable",
                "originalPurchaseDate": app.at(20),
            ])
        for key in ["expiresDate", "webOrderLineItemId", "subscriptionGroupIdentifier"] { claims[key] = nil }
        if refunded {
            claims["revocationDate"] = app.at(28)
            claims["revocationPercentage"] = 50_000
        }
        return claims
    }

    /// The same coins in a history.
    private func coinsRow(_ app: SignedApp, readOn day: Double, refunded: Bool = false) -> TransactionRow {
        TransactionRow(
            path: "history[0]", source: .signedText, asOf: Instant(milliseconds: app.at(day)), transactionID: "c1",
            originalTransactionID: "c1", productID: "coins", quantity: 1,
            purchasedAt: Instant(milliseconds: app.at(20)),
            cancelledAt: refunded ? Instant(milliseconds: app.at(28)) : nil)
    }

    /// Has verifyReceipt answer on a day: the customer finished the coins, and the receipt holds them as the device had them; or
    /// Apple's own list holds them likewise.
    private func deviceAnswer(_ app: SignedApp, on day: Double, isListed: Bool = false) async throws {
        let coins = """
            {"quantity": "1", "product_id": "coins", "transaction_id": "c1", "original_transaction_id": "c1",
            "purchase_date_ms": "\(app.at(20))", "original_purchase_date_ms": "\(app.at(20))"}
            """
        app.store.say(
            """
            {"status": 0, "environment": "Production", "receipt": {"bundle_id": "\(SignedApp.bundleID)",
            "request_date_ms": "\(app.at(day))", "receipt_creation_date_ms": "\(app.at(20.1))", "in_app": [\(coins)]},
            "latest_receipt_info": [\(isListed ? coins : "")]}
            """)
        _ = try await app.tracker.check(app.receipt)
    }

    private func refund(_ app: SignedApp) throws -> String {
        try app.notification(
            "REFUND", status: nil, transaction: coins(app, signedOn: 28.01, refunded: true), signedOn: 28.01)
    }

    /// What is known of the refund: whether there is one, whether with its share, and whether an answer took it back.
    private func refunds(_ app: SignedApp) async throws -> [String] {
        try await app.rows(
            """
            SELECT concat_ws(' ', revoked_at IS NOT NULL, revoked_at IS NOT NULL AND facts::text LIKE '%50000%',
                             facts ? 'refund_retracted_at_ms') AS line FROM ledger.purchase
            """)
    }

    @Test("A finished consumable is asked of the Server API too, where the app has a key")
    func finished() async throws {
        try await withKey { app in
            try await deviceAnswer(app, on: 21)
            #expect(try await app.post(refund(app)) == "asked")
            let pointed = try await ownerless(app)
            #expect(try await schedule(app, pointed) == ["4 5"])
            try await deviceAnswer(app, on: 28.1)
            #expect(try await schedule(app, app.receipt) == ["3 60"])
            try await serverAnswer(app, about: pointed, on: 28.2, [coinsRow(app, readOn: 28.2)])
            #expect(try await schedule(app, pointed) == ["3 60"], "the Server API lags")
            #expect(try await app.effects() == ["asked"])
            try await expectNoViolations(app)
            try await serverAnswer(app, about: pointed, on: 28.3, [coinsRow(app, readOn: 28.3, refunded: true)])
            #expect(try await app.effects() == ["applied"])
            #expect(try await refunds(app) == ["t t f"])
            #expect(try await schedule(app, pointed) == [])
            #expect(try await app.rows("SELECT polled_by::text AS line FROM ledger.purchase") == ["\(app.receipt)"])
            try await expectNoViolations(app)
        }
    }

    private func giveKey(_ app: SignedApp) async throws {
        try await app.tracker.ledger.apps.storeServerKey(
            try ConnectKey(
                pem: P256.Signing.PrivateKey().pemRepresentation, id: "K2",
                issuer: "57246542-96fe-1a63-e053-0824d011072a"), of: ServedLedger.app)
    }

    private func takeUp(_ app: SignedApp) async throws {
        while try await app.tracker.ledger.intake.takeUpOwnerless() {}
        while try await app.tracker.ledger.intake.takeUpUnpolled() {}
    }

    @Test(
        "A refund of a finished consumable that was notified before the app had a key is asked about once it has one",
        arguments: [false, true])
    func keyComesLater(isUnshown: Bool) async throws {
        try await SignedApp.with { app in
            try await deviceAnswer(app, on: 21)
            #expect(try await app.post(refund(app)) == "asked")
            if isUnshown {
                for day in [28.1, 28.2, 28.3, 28.4] { try await deviceAnswer(app, on: day) }
                #expect(try await app.effects() == ["unshown"])
            }
            try await takeUp(app)
            #expect(try await app.rows("SELECT 'r' AS line FROM ledger.receipt") == ["r"], "there is no key yet")
            try await giveKey(app)
            try await takeUp(app)
            #expect(try await app.effects() == ["asked"])
            let pointed = try await ownerless(app)
            #expect(try await schedule(app, pointed) == ["4 5"])
            try await expectNoViolations(app)
            try await serverAnswer(app, about: pointed, on: 28.5, [coinsRow(app, readOn: 28.5, refunded: true)])
            #expect(try await app.effects() == ["applied"])
            #expect(try await refunds(app) == ["t t f"])
            #expect(try await schedule(app, pointed) == [])
            #expect(try await app.rows("SELECT polled_by::text AS line FROM ledger.purchase") == ["\(app.receipt)"])
            try await expectNoViolations(app)
        }
    }

    @Test("A key has stored questions put once, and another key only those that were not answered")
    func askedOnce() async throws {
        try await SignedApp.with { app in
            try await deviceAnswer(app, on: 21)
            try await app.post(refund(app))
            try await giveKey(app)
            try await takeUp(app)
            let pointed = try await ownerless(app)
            // The key goes before Apple answered.
            try await app.tracker.ledger.apps.removeServerKey(of: ServedLedger.app)
            while try await app.tracker.ledger.intake.giveUpKeyless() {}
            #expect(try await schedule(app, pointed) == [])
            try await giveKey(app)
            try await takeUp(app)
            #expect(try await schedule(app, pointed) == ["4 5"])
            for day in [28.1, 28.2, 28.3, 28.4] {
                try await serverAnswer(app, about: pointed, on: day, [coinsRow(app, readOn: day)])
            }
            #expect(try await app.effects() == ["unshown"])
            #expect(try await schedule(app, pointed) == [])
            try await giveKey(app)
            try await takeUp(app)
            #expect(try await app.effects() == ["unshown"], "the Server API did not show it")
            #expect(try await schedule(app, pointed) == [])
            #expect(try await app.rows("SELECT 'r' AS line FROM ledger.receipt").count == 2)
            try await expectNoViolations(app)
        }
    }

    @Test("What no answer showed is unshown, and changes no money")
    func unshown() async throws {
        try await SignedApp.with { app in
            try await deviceAnswer(app, on: 21)
            #expect(try await app.post(refund(app)) == "asked")
            for day in [28.1, 28.2, 28.3, 28.4, 28.5] { try await deviceAnswer(app, on: day) }
            #expect(try await app.effects() == ["unshown"])
            #expect(try await refunds(app) == ["f f f"])
            try await app.expectSound()
        }
    }

    @Test("A second answer that takes a refund back is asked of the receipt that gave the first")
    func retracted() async throws {
        try await withKey { app in
            try await deviceAnswer(app, on: 21)
            try await app.post(refund(app))
            let pointed = try await ownerless(app)
            try await serverAnswer(app, about: pointed, on: 28.3, [coinsRow(app, readOn: 28.3, refunded: true)])
            try await app.post(
                app.notification(
                    "REFUND_REVERSED", status: nil, transaction: coins(app, signedOn: 28.4), signedOn: 28.4))
            try await serverAnswer(app, about: pointed, on: 28.5, [coinsRow(app, readOn: 28.5)])
            #expect(try await refunds(app) == ["t t t"])
            #expect(try await schedule(app, pointed) == ["0 60"])
            try await deviceAnswer(app, on: 28.6)
            #expect(try await refunds(app) == ["t t t"])
            let waits = try await app.rows(
                "SELECT (due_at > now() + interval '1 day')::text AS line FROM ledger.poll_schedule WHERE receipt_id = \(app.receipt)"
            )
            #expect(waits == ["true"], "it cannot show whether the refund is gone")
            try await serverAnswer(app, about: pointed, on: 28.7, [coinsRow(app, readOn: 28.7)])
            #expect(try await refunds(app) == ["f f f"])
            #expect(try await schedule(app, pointed) == [])
            try await expectNoViolations(app)
        }
    }

    @Test("A refund that the Server API showed stays, whatever verifyReceipt lists, and ends the questions")
    func overruled() async throws {
        try await withKey { app in
            try await deviceAnswer(app, on: 21, isListed: true)
            try await app.post(refund(app))
            let pointed = try await ownerless(app)
            // Apple's other channel is asked a moment later.
            try await deviceAnswer(app, on: 28.31, isListed: true)
            try await serverAnswer(app, about: pointed, on: 28.3, [coinsRow(app, readOn: 28.3, refunded: true)])
            #expect(try await app.effects() == ["applied"])
            #expect(try await refunds(app) == ["t t f"])
            for day in [28.32, 28.4, 28.5, 28.6] {
                try await deviceAnswer(app, on: day, isListed: true)
                #expect(try await refunds(app) == ["t t f"])
                let rests = try await app.rows(
                    """
                    SELECT concat_ws(' ', follow_ups, due_at > now() + interval '1 day') AS line
                    FROM ledger.poll_schedule WHERE receipt_id = \(app.receipt)
                    """)
                #expect(rests == ["0 t"])
            }
            let events = try await app.rows("SELECT kind::text AS line FROM ledger.event ORDER BY version, ordinal")
            #expect(events == ["purchase.made", "ownership.assigned", "purchase.refunded"])
            try await expectNoViolations(app)
        }
    }

    @Test("What a new key lets Apple be asked about is taken up, which violates nothing until the first answer")
    func takenUp() async throws {
        try await withKey { app in
            try await app.post(turnedOff(app))
            let pointed = try await ownerless(app)
            let rows = [week(app, readOn: 28.3), coinsRow(app, readOn: 28.3)]
            try await serverAnswer(app, about: pointed, on: 28.3, rows)
            try await app.tracker.ledger.apps.removeServerKey(of: ServedLedger.app)
            while try await app.tracker.ledger.intake.giveUpKeyless() {}
            #expect(try await app.rows("SELECT count(polled_by)::text AS line FROM (\(Self.polled)) p") == ["0"])
            try await expectNoViolations(app)
            try await app.tracker.ledger.apps.storeServerKey(
                try ConnectKey(
                    pem: P256.Signing.PrivateKey().pemRepresentation, id: "K2",
                    issuer: "57246542-96fe-1a63-e053-0824d011072a"), of: ServedLedger.app)
            try await expectNoViolations(app)
            _ = try await app.tracker.ledger.intake.takeUpUnpolled()
            try await expectNoViolations(app)
            while try await app.tracker.ledger.intake.takeUpOwnerless() {}
            try await expectNoViolations(app)
            _ = try await app.tracker.check(pointed)
            let backsOff = "SELECT backs_off::text AS line FROM ledger.poll_schedule WHERE receipt_id = \(pointed)"
            #expect(try await app.rows(backsOff) == ["true"])
            try await expectNoViolations(app)
            let worker = try await app.tracker.ledger.claims.startWorker(host: "test", process: 2)
            let claim = try await app.tracker.ledger.claims.claim(pointed, for: worker, leaseSeconds: 60)
            try await expectNoViolations(app)
            try await app.tracker.ledger.claims.release([claim])
            try await serverAnswer(
                app, about: pointed, on: 28.4, [week(app, readOn: 28.4), coinsRow(app, readOn: 28.4)])
            #expect(try await app.rows("SELECT count(polled_by)::text AS line FROM (\(Self.polled)) p") == ["2"])
            try await expectNoViolations(app)
            // What nobody takes up is a violation still.
            try await app.served.run(
                """
                UPDATE ledger.subscription SET polled_by = NULL, next_check_at = NULL;
                UPDATE ledger.purchase SET polled_by = NULL, next_check_at = NULL;
                UPDATE ledger.notification SET effect = 'unshown';
                UPDATE ledger.poll_schedule SET follow_ups = 0, due_at = now() + interval '1 day'
                """)
            let found = try await app.tracker.ledger.operations.violations(
                [.poller, .purchaseCoverage], otherwise: VerifyTerms(leaseSeconds: 60, speedup: 1))
            #expect(Set(found.map(\.invariant)) == [.poller, .purchaseCoverage])
        }
    }

    private static let polled =
        "SELECT polled_by FROM ledger.subscription UNION ALL SELECT polled_by FROM ledger.purchase"
}
