import AppStore
import Foundation
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("An app that asks both channels: verifyReceipt decides, the Server API is compared and stands in")
struct BothChannelsTests {
    /// A line whose app asks both channels, and a stored receipt.
    private func withBoth(_ body: @escaping @Sendable (ServerLine, ReceiptID) async throws -> Void) async throws {
        try await ServerLine.with { line in
            try await line.verify(by: .both)
            let upload = Submission(bundleID: ServedLedger.app, customer: "kim", receipt: Sample.receipt())
            let receipt = try #require(try await line.tracker.store([upload]).first?.get()).receiptID
            line.receipts.say(Sample.verified())
            try await body(line, receipt)
        }
    }

    /// What the Server API says of the sample's subscription, which ends `hoursLater` than verifyReceipt says.
    private func contents(of line: ServerLine, hoursLater: Int64 = 0) async throws -> ServerContents {
        let stored = try #require(
            try await line.rows(
                """
                SELECT (EXTRACT(epoch FROM purchased_at) * 1000)::int8 AS a, (EXTRACT(epoch FROM expires_at) * 1000)::int8 AS b
                FROM ledger.period
                """
            ).first
        ).split(separator: " ").compactMap { Int64($0) }
        let (bought, ends) = (stored[0], stored[1] + hoursLater * 3_600_000)
        func text(_ claims: String) -> String { "e30.\(base64url(claims)).c2ln" }
        let signed = Int64(Date.now.timeIntervalSince1970) * 1_000
        let transaction = text(
            """
            {"transactionId":"100","originalTransactionId":"100","webOrderLineItemId":"100","productId":"monthly",
             "bundleId":"com.example.app","environment":"Production","purchaseDate":\(bought),"expiresDate":\(ends),
             "originalPurchaseDate":\(bought),"subscriptionGroupIdentifier":"2000","quantity":1,"signedDate":\(signed)}
            """)
        let renewal = text(
            """
            {"originalTransactionId":"100","productId":"monthly","autoRenewProductId":"monthly","autoRenewStatus":1,
             "environment":"Production","signedDate":\(signed + 2_000)}
            """)
        let json = """
            {"asked":"100","environment":"Production","statuses":{"data":[{"lastTransactions":[{"originalTransactionId":"100",
              "status":1,"signedTransactionInfo":"\(transaction)","signedRenewalInfo":"\(renewal)"}]}]},
             "history":[{"revision":"r","hasMore":false,"signedTransactions":["\(transaction)"]}]}
            """
        return try #require(ServerContents(reading: Array(json.utf8)))
    }

    private func base64url(_ text: String) -> String {
        Data(text.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing(
            "=", with: "")
    }

    @Test("Renewal information speaks for the answer that holds it, and for each equal one")
    func renewalClocks() async throws {
        try await withBoth { line, receipt in
            _ = try await line.tracker.check(receipt)
            let said = try await contents(of: line)
            let evidence = try #require(
                Evidence(in: said, bundleID: ServedLedger.app, claimedAt: Instant(milliseconds: 0)))
            #expect(evidence.renewals.map(\.asOf) == [evidence.asOf])
            let later = evidence.asOf + .minutes(9)
            #expect(evidence.given(at: later).renewals.map(\.asOf) == [later])
            let kept = try #require(
                Evidence(in: said, bundleID: ServedLedger.app, asOf: later, claimedAt: Instant(milliseconds: 0)))
            #expect(kept.renewals.map(\.asOf) == [later], "as a rebuild reads it")
        }
    }

    private func standings(_ line: ServerLine) async throws -> [String] {
        try await line.rows("SELECT fact, standing FROM perennial.channel_difference")
    }

    @Test("The first check asks verifyReceipt alone, later ones read everything of both; equal ones count as compared")
    func compares() async throws {
        try await withBoth { line, receipt in
            let first = try await line.tracker.check(receipt)
            #expect(first.outcome == .verified && line.server.asked.isEmpty)
            line.server.say(.answered(try await contents(of: line)))
            let second = try await line.tracker.check(receipt)
            #expect(second.outcome == .verified && second.subscriptions.flatMap(\.events) == [])
            #expect(line.receipts.callCount == 2 && line.server.asked.map(\.revision) == [nil])
            #expect(try await standings(line) == [])
            let standing = try #require(try await line.served.ledger.apps.channelStanding(of: ServedLedger.app))
            #expect(standing.compared == 1 && standing.live == 1 && standing.open == 0)
        }
    }

    @Test("What the Server API says differently is recorded and changes nothing")
    func differs() async throws {
        try await withBoth { line, receipt in
            _ = try await line.tracker.check(receipt)
            line.server.say(.answered(try await contents(of: line, hoursLater: 5)))
            let settled = try await line.tracker.check(receipt)
            #expect(settled.outcome == .verified && settled.subscriptions.flatMap(\.events) == [])
            #expect(try await standings(line) == ["expires_at waiting"])
            #expect(try await line.rows("SELECT count(*) AS n FROM ledger.period") == ["1"])
            line.server.say(.answered(try await contents(of: line)))
            _ = try await line.tracker.check(receipt)
            #expect(try await standings(line) == ["expires_at agreed"])
        }
    }

    @Test("What verifyReceipt refuses is refused, whatever the Server API says of it")
    func refused() async throws {
        try await withBoth { line, receipt in
            _ = try await line.tracker.check(receipt)
            line.server.say(.answered(try await contents(of: line)))
            let before = try await line.rows("SELECT as_of FROM ledger.subscription")
            for status in [21003, 21010] {
                line.receipts.say("{\"status\":\(status)}")
                #expect(try await line.tracker.check(receipt).outcome == .rejected, "\(status)")
            }
            #expect(try await line.rows("SELECT as_of FROM ledger.subscription") == before)
        }
    }

    @Test("A secret that verifyReceipt refuses holds verifyReceipt alone until a trial is accepted; the status says so")
    func refusedSecret() async throws {
        try await withBoth { line, receipt in
            // Apple sends a `latest_receipt` only after a look at the secret.
            let accepted = Sample.verified().replacing(
                #""latest_receipt_info""#, with: #""latest_receipt":"\#(Sample.receipt())","latest_receipt_info""#)
            line.receipts.say(accepted)
            _ = try await line.tracker.check(receipt)
            line.server.say(.answered(try await contents(of: line)))
            line.receipts.say(#"{"status":21004}"#)
            #expect(try await line.tracker.check(receipt).outcome == .verified)
            await line.tracker.trySecrets()
            let calls = line.receipts.callCount
            #expect(calls == 3, "two checks and a trial")
            let status = try await line.served.ledger.operations.status()
            #expect(status.pauses.isEmpty && status.heldSecrets.map(\.bundleID) == [ServedLedger.app])
            #expect(line.journal.lines.contains { $0.hasPrefix("error Apple refuses the shared secret (21004)") })

            #expect(try await line.tracker.check(receipt).outcome == .verified)
            #expect(line.receipts.callCount == calls && line.server.asked.count == 2, "the Server API alone is asked")
            let error = await #expect(throws: LedgerError.self) { try await line.verify(by: .serverAPI) }
            #expect(error?.message.contains("Apple refuses the shared secret (21004) in Production") == true)

            line.receipts.say(accepted)
            try await line.served.ledger.apps.rotateSecret(of: ServedLedger.app, to: "rotated")
            await line.tracker.trySecrets()
            let app = try await line.served.ledger.apps.app(ServedLedger.app)
            #expect(app.heldSecrets.isEmpty)
            _ = try await line.tracker.check(receipt)
            #expect(line.receipts.callCount == calls + 2 && line.server.asked.count == 3, "both are asked again")
        }
    }

    @Test("A secret that Apple never accepted is in doubt also where the Server API answers in its place")
    func unprovedSecret() async throws {
        try await withBoth { line, receipt in
            _ = try await line.tracker.check(receipt)
            line.server.say(.answered(try await contents(of: line)))
            line.receipts.say(#"{"status":21004}"#)
            #expect(try await line.tracker.check(receipt).outcome == .verified)
            let app = try await line.served.ledger.apps.app(ServedLedger.app)
            #expect(app.secretDoubts == [App.SecretDoubt(environment: .production, receipts: 1)])
        }
    }

    @Test(
        "While verifyReceipt gives no verdict the Server API's answer counts; while it gives none, nothing is compared")
    func standsIn() async throws {
        try await withBoth { line, receipt in
            _ = try await line.tracker.check(receipt)
            line.server.say(.answered(try await contents(of: line)))
            line.receipts.say(nil)
            let settled = try await line.tracker.check(receipt)
            #expect(settled.outcome == .verified && settled.vouching == .vouched)
            line.receipts.say(Sample.verified())
            line.server.say(.keyRefused, httpStatus: 401)
            #expect(try await line.tracker.check(receipt).outcome == .verified)
            let app = try await line.served.ledger.apps.app(ServedLedger.app)
            #expect(app.pause == nil, "verifyReceipt goes on")
            #expect(line.journal.lines.contains { $0.contains("the Server API refuses the calls") })
            #expect(try await line.rows("SELECT compared_at IS NULL AS c FROM ledger.channel_comparison") == ["true"])
        }
    }
}
