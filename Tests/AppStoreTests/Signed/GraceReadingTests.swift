import Foundation
import Subscriptions
import Testing

@testable import AppStore

@Suite("Status 4 of the Server API means the same whatever was known before it")
struct GraceReadingTests {
    private static let end: Int64 = 1_782_592_000_000
    private static let day: Int64 = 86_400_000

    /// What the Server API states some days after the end of a month, with a date of grace or without.
    private func answer(after days: Int64, status: Int, grace: Int64?) throws -> SubscriptionEvidence {
        let asOf = Self.end + days * Self.day
        let transaction: [String: Any] = [
            "transactionId": "7", "originalTransactionId": "5", "webOrderLineItemId": "9", "productId": "monthly",
            "purchaseDate": Self.end - 30 * Self.day, "expiresDate": Self.end, "signedDate": asOf,
            "inAppOwnershipType": "PURCHASED", "type": "Auto-Renewable Subscription",
        ]
        var renewal: [String: Any] = [
            "originalTransactionId": "5", "productId": "monthly", "autoRenewProductId": "monthly", "autoRenewStatus": 1,
            "signedDate": asOf, "isInBillingRetryPeriod": true, "expirationIntent": 2,
        ]
        renewal["gracePeriodExpiresDate"] = grace.map { Self.end + $0 * Self.day }
        func payload(_ text: [String: Any]) throws -> [UInt8] {
            Array(try JSONSerialization.data(withJSONObject: text))
        }
        let bought = try #require(SignedTransaction(payload: payload(transaction)))
        let said = try #require(SignedRenewal(payload: payload(renewal), path: "statuses"))
        return Evidence(
            environment: .production, asOf: Instant(milliseconds: asOf), transactions: [bought.row],
            renewals: [said.row(status: AppleStatus(rawValue: status), beside: bought)]
        ).slice(of: "5")
    }

    @Test(
        "Beside a date that is over it gives access as without a date", arguments: [nil, 6, 16, 27] as [Int64?],
        [1, 24] as [Int64])
    func knownBefore(_ grace: Int64?, _ earlier: Int64) throws {
        let policy = Policy.standard(for: .production)
        for (status, date) in [(3, nil), (4, nil), (3, 6), (3, 16), (4, 6), (4, 16), (4, 27)] as [(Int, Int64?)] {
            // A date that an older answer gave, and that was still ahead, ends what has no date.
            if date == 27, grace == nil { continue }
            let newest = try answer(after: 25, status: 4, grace: grace)
            let older = try reconcile(nil, with: answer(after: earlier, status: status, grace: date), policy: policy)
            let both = reconcile(older.state, with: newest, policy: policy).state
            for days in [25, 26, 27, 28] as [Int64] {
                let probe = Instant(milliseconds: Self.end + days * Self.day + 1)
                let alone = verdict(of: SubscriptionFacts(newest), at: probe, policy: policy)
                let found = verdict(of: both.facts, at: probe, policy: policy)
                let isGranted = days < (grace == 27 ? 27 : 28)
                #expect(alone.state == (isGranted ? .gracePeriod : .billingRetry), "after \(days) days")
                #expect(found.state == alone.state, "after \(days) days, after \(status) \(String(describing: date))")
            }
        }
    }
}
