import AppStoreSimulator
import Foundation

/// Signed texts of a pretend Apple, of the usual size.
struct SignedTexts: Sendable {
    let authority: SigningAuthority
    let bundleID: String
    /// The instant around which the purchases are, in milliseconds.
    let now: Int64

    init(bundleID: String, authority: SigningAuthority) {
        self.authority = authority
        self.bundleID = bundleID
        now = Int64(Date.now.timeIntervalSince1970) * 1_000
    }

    /// The first month of a subscription, or the second one.
    func transaction(of number: Int, month: Int = 0) throws -> String {
        let (start, length) = (now - 3_600_000, Int64(2_592_000_000))
        let bought = start + Int64(month) * length
        return try sign(
            """
            {"transactionId":"\(id(number))\(month)","originalTransactionId":"\(id(number))0",\
            "webOrderLineItemId":"9\(id(number))\(month)","bundleId":"\(bundleID)","productId":"\(bundleID).monthly",\
            "subscriptionGroupIdentifier":"20500001","purchaseDate":\(bought),"originalPurchaseDate":\(start),\
            "expiresDate":\(bought + length),"quantity":1,"type":"Auto-Renewable Subscription",\
            "appAccountToken":"3f2504e0-4f89-41d3-9a0c-0305e82c3301","inAppOwnershipType":"PURCHASED",\
            "signedDate":\(now),"environment":"Production",\
            "transactionReason":"\(month == 0 ? "PURCHASE" : "RENEWAL")","storefront":"DEU","storefrontId":"143443",\
            "price":4990,"currency":"EUR","appTransactionId":"704289572311513293"}
            """)
    }

    /// A notification about that month, with its transaction and renewal.
    func notification(of number: Int, month: Int = 0) throws -> String {
        let length = Int64(2_592_000_000)
        let ends = now - 3_600_000 + Int64(month + 1) * length
        let renewal = try sign(
            """
            {"originalTransactionId":"\(id(number))0","productId":"\(bundleID).monthly",\
            "autoRenewProductId":"\(bundleID).monthly","autoRenewStatus":1,"signedDate":\(now),\
            "environment":"Production","recentSubscriptionStartDate":\(now - 3_600_000),"renewalDate":\(ends),\
            "renewalPrice":4990,"currency":"EUR","appTransactionId":"704289572311513293"}
            """)
        let kind = month == 0 ? #""SUBSCRIBED","subtype":"INITIAL_BUY""# : #""DID_RENEW""#
        return try sign(
            """
            {"notificationType":\(kind),"notificationUUID":"\(UUID())","version":"2.0","signedDate":\(now),\
            "data":{"appAppleId":1,"bundleId":"\(bundleID)","bundleVersion":"1","environment":"Production","status":1,\
            "signedTransactionInfo":"\(try transaction(of: number, month: month))","signedRenewalInfo":"\(renewal)"}}
            """)
    }

    /// The purchase's id: of the usual length.
    func id(_ number: Int) -> String { "4\(10_000_000_000_000 + number)" }

    private func sign(_ payload: String) throws -> String { try authority.sign(Array(payload.utf8)) }
}
