import SeededRandom
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("The Server API is asked until it shows the share of a refund, whatever verifyReceipt shows of it")
struct ShareQuestionsTests {
    /// Who held the coins before their refund.
    enum Holder: CaseIterable {
        /// The receipt of a device.
        case device
        /// A receipt that a notification made.
        case notification
        /// A signed transaction that a customer sent.
        case signed
        /// The bare id that a customer sent.
        case pointer
    }

    private func hold(_ app: SignedApp, by holder: Holder) async throws {
        func upload(_ form: SubmittedForm, _ text: String) async throws {
            let upload = Upload(
                appID: app.app.id, customer: "kim", receipt: Array(text.utf8), imported: false, form: form,
                transactionID: "c1", environment: form == .signedTransaction ? .production : nil)
            let stored = try #require(try await app.served.ledger.intake.store([upload]).first)
            try await app.serverAnswer(about: stored.receiptID, on: 21, [app.coinsRow(readOn: 21)])
        }
        switch holder {
        case .device: try await app.deviceAnswer(on: 21)
        case .notification:
            try await app.post(
                app.notification(
                    "ONE_TIME_CHARGE", status: nil, transaction: app.coins(signedOn: 20.5), signedOn: 20.5))
            try await app.serverAnswer(about: app.ownerless(), on: 21, [app.coinsRow(readOn: 21)])
        case .signed: try await upload(.signedTransaction, try app.sign(app.coins(signedOn: 20.5)))
        case .pointer: try await upload(.transactionID, "c1")
        }
    }

    /// The receipts about which a channel is asked because of notifications.
    private func asked(_ app: SignedApp, ofServer: Bool) async throws -> [ReceiptID] {
        try await app.rows(
            """
            SELECT q.receipt_id::text AS line FROM ledger.poll_schedule q JOIN ledger.receipt r USING (receipt_id)
            WHERE q.follow_ups > 0 AND (r.form <> 'receipt') = \(ofServer) ORDER BY 1
            """
        ).compactMap { Int64($0).map { ReceiptID($0) } }
    }

    @Test("A receipt that shows the date of a second refund leaves the question of its share to the Server API")
    func takenOver() async throws {
        try await SignedApp.withKey { app in
            try await hold(app, by: .notification)
            let pointed = try await app.ownerless()
            try await app.post(app.refund())
            try await app.serverAnswer(about: pointed, on: 28.1, [app.coinsRow(readOn: 28.1, refunded: 50_000)])
            let second = app.coins(signedOn: 28.2, refunded: 80_000, on: 28.0002)
            try await app.post(app.notification("REFUND", status: nil, transaction: second, signedOn: 28.2))
            try await app.deviceAnswer(on: 28.3, refundedOn: 28.0002)
            #expect(try await app.rows("SELECT polled_by::text AS line FROM ledger.purchase") == ["\(app.receipt)"])
            #expect(try await app.effects() == ["applied", "applied", "asked"])
            #expect(try await asked(app, ofServer: true) == [pointed])
            try await app.expectNoViolations()
            // The Server API lags, and its history says nothing new.
            try await app.serverAnswer(about: pointed, on: 28.31, [])
            #expect(try await app.schedule(pointed) == ["3 60"])
            try await app.expectNoViolations()
            try await app.serverAnswer(
                about: pointed, on: 28.32, [app.coinsRow(readOn: 28.32, refunded: 80_000, on: 28.0002)])
            #expect(try await app.effects() == ["applied", "applied", "applied"])
            #expect(try await app.rows(Self.shown) == ["80000"])
            #expect(try await app.schedule(pointed) == [])
            try await app.expectNoViolations()
        }
    }

    private static let shown = "SELECT COALESCE(ledger.shown_percentage(facts), 0)::text AS line FROM ledger.purchase"

    @Test("An answer from before two opposite changes does not show the second one", arguments: [false, true])
    func opposite(isPurchase: Bool) async throws {
        try await SignedApp.with { app in
            let week = app.transaction("1", from: 28, signedOn: 28.1)
            func answer(_ day: Double, isChanged: Bool = false) async throws {
                if isPurchase {
                    try await app.deviceAnswer(on: day, isListed: true, refundedOn: isChanged ? 28 : nil)
                } else {
                    try await app.answer(on: day, [week], renews: !isChanged)
                }
            }
            try await answer(28.1)
            for (day, isChanged) in [(28.2, true), (28.201, false)] {
                let share = isChanged ? 100_000 : nil
                try await app.post(
                    isPurchase
                        ? app.notification(
                            isChanged ? "REFUND" : "REFUND_REVERSED", status: nil,
                            transaction: app.coins(signedOn: day, refunded: share), signedOn: day)
                        : app.notification(
                            "DID_CHANGE_RENEWAL_STATUS", isChanged ? "AUTO_RENEW_DISABLED" : "AUTO_RENEW_ENABLED",
                            transaction: week, renewal: app.renewal(ends: 35, signedOn: day, renews: !isChanged),
                            signedOn: day))
            }
            try await answer(28.202)
            #expect(try await app.effects() == ["asked", "asked"], "Apple may lag behind both")
            // Another reason to ask comes while Apple shows the first change only.
            try await answer(28.203, isChanged: true)
            #expect(try await app.effects().last == "asked")
            let state =
                "SELECT will_renew::text AS line FROM ledger.subscription UNION ALL "
                + "SELECT (revoked_at IS NULL)::text FROM ledger.purchase"
            #expect(try await app.rows(state) == ["false"])
            for day in [28.204, 28.22, 28.24] where try await asked(app, ofServer: false) != [] || day > 28.21 {
                try await answer(day)
            }
            #expect(try await app.rows(state) == ["true"])
            #expect(try await app.effects() == ["applied", "applied"])
            try await app.expectNoViolations()
        }
    }

    @Test("Opposite changes that no answer tells apart are asked about to the last follow-up")
    func untold() async throws {
        try await SignedApp.with { app in
            try await app.deviceAnswer(on: 28.1, isListed: true)
            for (kind, share) in [("REFUND", 100_000), ("REFUND_REVERSED", nil)] as [(String, Int?)] {
                let day = share == nil ? 28.201 : 28.2
                try await app.post(
                    app.notification(
                        kind, status: nil, transaction: app.coins(signedOn: day, refunded: share), signedOn: day))
            }
            for left in ["3 60", "2 300", "1 600"] {
                try await app.deviceAnswer(on: 28.3, isListed: true)
                #expect(try await app.schedule(app.receipt) == [left])
                #expect(try await app.effects() == ["asked", "asked"])
            }
            try await app.deviceAnswer(on: 28.4, isListed: true)
            #expect(try await app.effects() == ["applied", "applied"])
            try await app.expectNoViolations()
        }
    }

    private static func answered(_ receipt: ReceiptID) -> String {
        "SELECT (verified_at IS NOT NULL)::text AS line FROM ledger.receipt WHERE receipt_id = \(receipt)"
    }

    @Test("A new key has Apple asked about the share of a refund that came without a key", arguments: [false, true])
    func keyComes(isAsked: Bool) async throws {
        try await SignedApp.withKey { app in
            try await hold(app, by: .device)
            if isAsked {
                let charge = app.coins(signedOn: 21.5)
                try await app.post(
                    app.notification("ONE_TIME_CHARGE", status: nil, transaction: charge, signedOn: 21.5))
                try await app.serverAnswer(about: app.ownerless(), on: 22, [app.coinsRow(readOn: 22)])
            }
            try await app.tracker.ledger.apps.removeServerKey(of: ServedLedger.app)
            let address = try await app.tracker.ledger.apps.openNotifications(of: ServedLedger.app)
            let keyless = try #require(try await app.tracker.ledger.apps.notifiedApp(at: address))
            let refund = try app.refund()
            guard case .verified(let said) = try await app.tracker.receive(Array(refund.utf8), for: keyless) else {
                Issue.record("The refund is not verified.")
                return
            }
            _ = try await app.served.ledger.intake.keep(said, for: keyless)
            try await app.deviceAnswer(on: 28.1, refundedOn: 28)
            #expect(try await app.effects().last == "applied")
            for round in 0..<2 {
                try await app.giveKey()
                while try await app.tracker.ledger.intake.takeUpOwnerless() {}
                let pointed = try await app.ownerless()
                #expect(try await asked(app, ofServer: true) == (round == 0 ? [pointed] : []))
                try await app.expectNoViolations()
                guard round == 0 else { continue }
                try await app.serverAnswer(about: pointed, on: 28.2, [app.coinsRow(readOn: 28.2)])
                try await app.serverAnswer(about: pointed, on: 28.3, [app.coinsRow(readOn: 28.3, refunded: 50_000)])
                #expect(try await app.effects().last == "applied")
                #expect(try await app.rows(Self.shown) == ["50000"])
                try await app.expectNoViolations()
            }
        }
    }

    @Test("A question that a key takes with it is unshown, and the next key puts it again")
    func keyGoes() async throws {
        try await SignedApp.withKey { app in
            try await hold(app, by: .device)
            try await app.post(app.refund())
            try await app.deviceAnswer(on: 28.1, refundedOn: 28)
            #expect(try await app.effects() == ["asked"])
            while try await asked(app, ofServer: false) != [] { try await app.deviceAnswer(on: 28.2, refundedOn: 28) }
            try await app.expectNoViolations()
            try await app.tracker.ledger.apps.removeServerKey(of: ServedLedger.app)
            while try await app.tracker.ledger.intake.giveUpKeyless() {}
            #expect(try await app.effects() == ["unshown"])
            try await app.expectNoViolations()
            try await app.giveKey()
            while try await app.tracker.ledger.intake.takeUpOwnerless() {}
            let pointed = try await app.ownerless()
            #expect(try await asked(app, ofServer: true) == [pointed])
            try await app.serverAnswer(about: pointed, on: 28.3, [app.coinsRow(readOn: 28.3, refunded: 50_000)])
            #expect(try await app.effects() == ["applied"])
            #expect(try await app.rows(Self.shown) == ["50000"])
            try await app.expectNoViolations()
        }
    }

    @Test(
        "However refunds, uploads and lagging answers meet, the share that the Server API states is known at the end",
        arguments: Holder.allCases)
    func random(holder: Holder) async throws {
        // One after the other: each world has a database with connections of its own.
        for seed in 0..<6 as Range<UInt64> { try await live(holder, seed) }
    }

    /// Answers what notifications ask, on both channels, as a refund is.
    private func answerAll(_ app: SignedApp, _ refund: (share: Int, day: Double)?, from start: Double) async throws {
        for day in (1...5).map({ start + 0.002 * Double($0) }) {
            if try await asked(app, ofServer: false) != [] {
                try await app.deviceAnswer(on: day, isListed: true, refundedOn: refund?.day)
            }
            for receipt in try await asked(app, ofServer: true) {
                let row = app.coinsRow(readOn: day, refunded: refund?.share, on: refund?.day ?? 28)
                try await app.serverAnswer(about: receipt, on: day, [row])
            }
        }
    }

    private func live(_ holder: Holder, _ seed: UInt64) async throws {
        try await SignedApp.withKey { app in
            var random = Seeded(seed: seed)
            try await hold(app, by: holder)
            let dates = [28, 28.0003, 28.5].shuffled(using: &random).prefix(2).sorted()
            var shares = [30_000, 50_000, 80_000, 100_000].shuffled(using: &random).prefix(2).sorted()
            var (refund, before) = (nil as (share: Int, day: Double)?, nil as (share: Int, day: Double)?)
            var (day, lags, steps) = (28.6, 0, [] as [String])
            func row(_ refund: (share: Int, day: Double)?) -> TransactionRow {
                refund.map { app.coinsRow(readOn: day, refunded: $0.share, on: $0.day) } ?? app.coinsRow(readOn: day)
            }
            for _ in 0..<12 {
                day += 0.002
                switch Int.random(in: 0..<6, using: &random) {
                case 0...1 where !shares.isEmpty:
                    (before, lags) = (refund, 0)
                    let next = (share: shares.removeFirst(), day: dates[1 - shares.count])
                    let text = app.coins(signedOn: day, refunded: next.share, on: next.day)
                    try await app.post(app.notification("REFUND", status: nil, transaction: text, signedOn: day))
                    refund = next
                    steps.append("refund \(next)")
                case 2:
                    try await app.deviceAnswer(on: day, isListed: true, refundedOn: refund?.day)
                    steps.append("listed")
                case 3:
                    try await app.deviceAnswer(on: day)
                    steps.append("device")
                default:
                    for receipt in try await asked(app, ofServer: true) {
                        let isLagging = lags < 2 && Bool.random(using: &random)
                        // What one answer shows, later ones do not lag behind.
                        lags += isLagging ? 1 : 2
                        // The first answer about an id shows its transaction; later ones begin where the last one ended.
                        let isFirst = try await app.rows(Self.answered(receipt)) == ["false"]
                        let old = isFirst || Bool.random(using: &random) ? [row(before)] : []
                        try await app.serverAnswer(about: receipt, on: day, isLagging ? old : [row(refund)])
                        steps.append(isLagging ? "lags \(old.count)" : "shows")
                    }
                }
                #expect(
                    try await app.tracker.ledger.operations.violations(
                        Set(Invariant.allCases), otherwise: VerifyTerms(leaseSeconds: 60, speedup: 1)
                    ).map { "\($0)" } == [], "seed \(seed): \(steps)")
            }
            try await answerAll(app, refund, from: day)
            let shown = try await app.rows(Self.shown).first.flatMap { Int($0) }
            #expect(shown == refund?.share ?? 0, "seed \(seed): \(steps)")
            let open = try await app.effects().filter { $0 != "applied" }
            #expect(open == [], "seed \(seed): \(steps)")
            try await app.expectNoViolations()
        }
    }
}
