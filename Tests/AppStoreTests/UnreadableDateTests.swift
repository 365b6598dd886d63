import AppStore
import Subscriptions
import Testing

@Suite("A date that cannot be read is named and not guessed") struct UnreadableDateTests {
    @Test(
        "A row whose expiry cannot be read is no purchase",
        arguments: ["abc", "-1", "253402300800000", "9223372036854775807", "1e300"])
    func aRowWhoseExpiryCannotBeReadIsNoPurchase(_ expiry: String) throws {
        let body = """
            {"status":0,"latest_receipt_info":[{"product_id":"p","transaction_id":"1","original_transaction_id":"1",\
            "purchase_date_ms":"1700000000000","expires_date_ms":"\(expiry)"}]}
            """
        let response = try VerifyReceiptResponse(parsing: Array(body.utf8))
        #expect(response.latestReceiptInfo.isEmpty)
        #expect(response.unreadableRows == ["latest_receipt_info[0]"])
    }

    @Test(
        "A purchase with a date that cannot be read is named",
        arguments: [
            #""purchase_date":"soon""#, #""purchase_date_ms":"-1""#,
            #""purchase_date_pst":"2014-11-12 07:10:33 America/Los_Angeles""#,
            #""purchase_date_ms":"1700000000000","cancellation_date":"soon""#,
            #""purchase_date_ms":"1700000000000","cancellation_date_ms":"-1""#, #""quantity":"1""#,
        ])
    func aPurchaseWithADateThatCannotBeReadIsNamed(_ dates: String) throws {
        let body = """
            {"status":0,"receipt":{"in_app":[{"product_id":"p","transaction_id":"1","original_transaction_id":"1",\
            "original_purchase_date":"?",\(dates)}]}}
            """
        let response = try VerifyReceiptResponse(parsing: Array(body.utf8))
        #expect(response.inApp.isEmpty)
        #expect(response.unreadableRows == ["receipt.in_app[0]"])
    }

    /// The original purchase stands in for a start that is missing, not for one that cannot be read: that may be years later.
    @Test("The original purchase stands in for a missing start only")
    func theOriginalPurchaseStandsInForAMissingStartOnly() throws {
        func starts(_ start: String) throws -> [Int64] {
            let body = """
                {"status":0,"latest_receipt_info":[{"product_id":"p","transaction_id":"1","original_transaction_id":"1",\
                "original_purchase_date_ms":"1600000000000",\(start)"expires_date_ms":"1700000000000"}]}
                """
            return try VerifyReceiptResponse(parsing: Array(body.utf8)).latestReceiptInfo.map(
                \.purchasedAt.milliseconds)
        }
        #expect(try starts("") == [1_600_000_000_000])
        #expect(try starts(#""purchase_date_ms":"","#) == [1_600_000_000_000])
        #expect(try starts(#""purchase_date":"soon","#) == [])
    }

    @Test("A row without any expiry stays a purchase")
    func aRowWithoutAnyExpiryStaysAPurchase() throws {
        let body = """
            {"status":0,"latest_receipt_info":[{"product_id":"p","transaction_id":"1","original_transaction_id":"1",\
            "purchase_date_ms":"1700000000000","expires_date_ms":"","expires_date":null}]}
            """
        let response = try VerifyReceiptResponse(parsing: Array(body.utf8))
        #expect(response.latestReceiptInfo.count == 1)
    }
}
