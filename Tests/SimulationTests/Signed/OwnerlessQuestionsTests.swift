import TestSupport
import Testing

@testable import Subscriptions
@testable import Tracking

@Suite("What a notification asks of a receipt that no customer sent goes on when a customer's receipt polls")
struct OwnerlessQuestionsTests {
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
        try await SignedApp.withKey { app in
            #expect(try await app.post(turnedOff(app)) == "asked")
            let pointed = try await app.ownerless()
            if isAnswered {
                try await app.serverAnswer(about: pointed, on: 28.3, [week(app, readOn: 28.3)])
                #expect(try await app.schedule(pointed) == ["3 60"])
            } else {
                _ = try await app.tracker.check(pointed)
                #expect(try await app.schedule(pointed).first?.hasPrefix("4 ") == true)
            }
            #expect(try await app.effects() == ["asked"])
            let week = app.transaction("1", from: 28, signedOn: 28.1)
            try await app.answer(on: 28.4, [week])
            #expect(try await app.effects() == ["asked"], "follow-ups are still to come")
            #expect(try await app.schedule(app.receipt) == [isAnswered ? "3 60" : "4 60"])
            try await app.expectNoViolations()
            try await app.answer(on: 28.5, [week])
            #expect(try await app.schedule(app.receipt) == [isAnswered ? "2 300" : "3 60"])
            try await app.answer(on: 28.6, [week], renews: false)
            #expect(try await app.effects() == ["applied"])
            #expect(try await app.schedule(app.receipt).first?.hasPrefix("0 ") == true)
            try await app.expectNoViolations()
        }
    }

    @Test("A finished consumable is asked of the Server API too, where the app has a key")
    func finished() async throws {
        try await SignedApp.withKey { app in
            try await app.deviceAnswer(on: 21)
            #expect(try await app.post(app.refund()) == "asked")
            let pointed = try await app.ownerless()
            #expect(try await app.schedule(pointed) == ["4 5"])
            try await app.deviceAnswer(on: 28.1)
            #expect(try await app.schedule(app.receipt) == ["3 60"])
            try await app.serverAnswer(about: pointed, on: 28.2, [app.coinsRow(readOn: 28.2)])
            #expect(try await app.schedule(pointed) == ["3 60"], "the Server API lags")
            #expect(try await app.effects() == ["asked"])
            try await app.expectNoViolations()
            try await app.serverAnswer(about: pointed, on: 28.3, [app.coinsRow(readOn: 28.3, refunded: 50_000)])
            #expect(try await app.effects() == ["applied"])
            #expect(try await app.refunds() == ["t t f"])
            #expect(try await app.schedule(pointed) == [])
            #expect(try await app.rows("SELECT polled_by::text AS line FROM ledger.purchase") == ["\(app.receipt)"])
            try await app.expectNoViolations()
        }
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
            try await app.deviceAnswer(on: 21)
            #expect(try await app.post(app.refund()) == "asked")
            if isUnshown {
                for day in [28.1, 28.2, 28.3, 28.4] { try await app.deviceAnswer(on: day) }
                #expect(try await app.effects() == ["unshown"])
            }
            try await takeUp(app)
            #expect(try await app.rows("SELECT 'r' AS line FROM ledger.receipt") == ["r"], "there is no key yet")
            try await app.giveKey()
            try await takeUp(app)
            #expect(try await app.effects() == ["asked"])
            let pointed = try await app.ownerless()
            #expect(try await app.schedule(pointed) == ["4 5"])
            try await app.expectNoViolations()
            try await app.serverAnswer(about: pointed, on: 28.5, [app.coinsRow(readOn: 28.5, refunded: 50_000)])
            #expect(try await app.effects() == ["applied"])
            #expect(try await app.refunds() == ["t t f"])
            #expect(try await app.schedule(pointed) == [])
            #expect(try await app.rows("SELECT polled_by::text AS line FROM ledger.purchase") == ["\(app.receipt)"])
            try await app.expectNoViolations()
        }
    }

    @Test("A key has stored questions put once, and another key only those that were not answered")
    func askedOnce() async throws {
        try await SignedApp.with { app in
            try await app.deviceAnswer(on: 21)
            try await app.post(app.refund())
            try await app.giveKey()
            try await takeUp(app)
            let pointed = try await app.ownerless()
            // The key goes before Apple answered.
            try await app.tracker.ledger.apps.removeServerKey(of: ServedLedger.app)
            while try await app.tracker.ledger.intake.giveUpKeyless() {}
            #expect(try await app.schedule(pointed) == [])
            try await app.giveKey()
            try await takeUp(app)
            #expect(try await app.schedule(pointed) == ["4 5"])
            for day in [28.1, 28.2, 28.3, 28.4] {
                try await app.serverAnswer(about: pointed, on: day, [app.coinsRow(readOn: day)])
            }
            #expect(try await app.effects() == ["unshown"])
            #expect(try await app.schedule(pointed) == [])
            try await app.giveKey()
            try await takeUp(app)
            #expect(try await app.effects() == ["unshown"], "the Server API did not show it")
            #expect(try await app.schedule(pointed) == [])
            #expect(try await app.rows("SELECT 'r' AS line FROM ledger.receipt").count == 2)
            try await app.expectNoViolations()
        }
    }

    @Test("What no answer showed is unshown, and changes no money")
    func unshown() async throws {
        try await SignedApp.with { app in
            try await app.deviceAnswer(on: 21)
            #expect(try await app.post(app.refund()) == "asked")
            for day in [28.1, 28.2, 28.3, 28.4, 28.5] { try await app.deviceAnswer(on: day) }
            #expect(try await app.effects() == ["unshown"])
            #expect(try await app.refunds() == ["f f f"])
            try await app.expectSound()
        }
    }

    @Test("A second answer that takes a refund back is asked of the receipt that gave the first")
    func retracted() async throws {
        try await SignedApp.withKey { app in
            try await app.deviceAnswer(on: 21)
            try await app.post(app.refund())
            let pointed = try await app.ownerless()
            try await app.serverAnswer(about: pointed, on: 28.3, [app.coinsRow(readOn: 28.3, refunded: 50_000)])
            try await app.post(
                app.notification(
                    "REFUND_REVERSED", status: nil, transaction: app.coins(signedOn: 28.4), signedOn: 28.4))
            try await app.serverAnswer(about: pointed, on: 28.5, [app.coinsRow(readOn: 28.5)])
            #expect(try await app.refunds() == ["t t t"])
            #expect(try await app.schedule(pointed) == ["0 60"])
            try await app.deviceAnswer(on: 28.6)
            #expect(try await app.refunds() == ["t t t"])
            let waits = try await app.rows(
                "SELECT (due_at > now() + interval '1 day')::text AS line FROM ledger.poll_schedule WHERE receipt_id = \(app.receipt)"
            )
            #expect(waits == ["true"], "it cannot show whether the refund is gone")
            try await app.serverAnswer(about: pointed, on: 28.7, [app.coinsRow(readOn: 28.7)])
            #expect(try await app.refunds() == ["f f f"])
            #expect(try await app.schedule(pointed) == [])
            try await app.expectNoViolations()
        }
    }

    @Test("A refund that the Server API showed stays, whatever verifyReceipt lists, and ends the questions")
    func overruled() async throws {
        try await SignedApp.withKey { app in
            try await app.deviceAnswer(on: 21, isListed: true)
            try await app.post(app.refund())
            let pointed = try await app.ownerless()
            // Apple's other channel is asked a moment later.
            try await app.deviceAnswer(on: 28.31, isListed: true)
            try await app.serverAnswer(about: pointed, on: 28.3, [app.coinsRow(readOn: 28.3, refunded: 50_000)])
            #expect(try await app.effects() == ["applied"])
            #expect(try await app.refunds() == ["t t f"])
            for day in [28.32, 28.4, 28.5, 28.6] {
                try await app.deviceAnswer(on: day, isListed: true)
                #expect(try await app.refunds() == ["t t f"])
                let rests = try await app.rows(
                    """
                    SELECT concat_ws(' ', follow_ups, due_at > now() + interval '1 day') AS line
                    FROM ledger.poll_schedule WHERE receipt_id = \(app.receipt)
                    """)
                #expect(rests == ["0 t"])
            }
            let events = try await app.rows("SELECT kind::text AS line FROM ledger.event ORDER BY version, ordinal")
            #expect(events == ["purchase.made", "ownership.assigned", "purchase.refunded"])
            try await app.expectNoViolations()
        }
    }

    @Test("What a new key lets Apple be asked about is taken up, which violates nothing until the first answer")
    func takenUp() async throws {
        try await SignedApp.withKey { app in
            try await app.post(turnedOff(app))
            let pointed = try await app.ownerless()
            let rows = [week(app, readOn: 28.3), app.coinsRow(readOn: 28.3)]
            try await app.serverAnswer(about: pointed, on: 28.3, rows)
            try await app.tracker.ledger.apps.removeServerKey(of: ServedLedger.app)
            while try await app.tracker.ledger.intake.giveUpKeyless() {}
            #expect(try await app.rows("SELECT count(polled_by)::text AS line FROM (\(Self.polled)) p") == ["0"])
            try await app.expectNoViolations()
            try await app.giveKey()
            try await app.expectNoViolations()
            _ = try await app.tracker.ledger.intake.takeUpUnpolled()
            try await app.expectNoViolations()
            while try await app.tracker.ledger.intake.takeUpOwnerless() {}
            try await app.expectNoViolations()
            _ = try await app.tracker.check(pointed)
            let backsOff = "SELECT backs_off::text AS line FROM ledger.poll_schedule WHERE receipt_id = \(pointed)"
            #expect(try await app.rows(backsOff) == ["true"])
            try await app.expectNoViolations()
            let worker = try await app.tracker.ledger.claims.startWorker(host: "test", process: 2)
            let claim = try await app.tracker.ledger.claims.claim(pointed, for: worker, leaseSeconds: 60)
            try await app.expectNoViolations()
            try await app.tracker.ledger.claims.release([claim])
            try await app.serverAnswer(
                about: pointed, on: 28.4, [week(app, readOn: 28.4), app.coinsRow(readOn: 28.4)])
            #expect(try await app.rows("SELECT count(polled_by)::text AS line FROM (\(Self.polled)) p") == ["2"])
            try await app.expectNoViolations()
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
