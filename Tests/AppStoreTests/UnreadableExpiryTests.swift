import AppStore
import Testing

@Suite struct UnreadableExpiryTests {
    @Test(arguments: ["abc", "0", "-1", "253402300800000", "9223372036854775807", "1e300"])
    func aRowWhoseExpiryCannotBeReadIsNoPurchase(_ expiry: String) throws {
        let body = """
            {"status":0,"latest_receipt_info":[{"product_id":"p","transaction_id":"1","original_transaction_id":"1",\
            "purchase_date_ms":"1700000000000","expires_date_ms":"\(expiry)"}]}
            """
        let response = try VerifyReceiptResponse(parsing: Array(body.utf8))
        #expect(response.latestReceiptInfo.isEmpty)
        #expect(response.unreadableRows == ["latest_receipt_info[0]"])
    }

    @Test func aRowWithoutAnyExpiryStaysAPurchase() throws {
        let body = """
            {"status":0,"latest_receipt_info":[{"product_id":"p","transaction_id":"1","original_transaction_id":"1",\
            "purchase_date_ms":"1700000000000","expires_date_ms":"","expires_date":null}]}
            """
        let response = try VerifyReceiptResponse(parsing: Array(body.utf8))
        #expect(response.latestReceiptInfo.count == 1)
    }
}
