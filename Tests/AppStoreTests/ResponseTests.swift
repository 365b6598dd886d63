import Testing

@testable import AppStore
@testable import Subscriptions

func parse(_ json: String) throws -> VerifyReceiptResponse {
    try VerifyReceiptResponse(parsing: Array(json.utf8))
}

@Suite("Answers become rows") struct ResponseTests {
    static let row = """
        "product_id":"monthly","transaction_id":"11","original_transaction_id":"10","purchase_date_ms":"1000"
        """

    @Test("A unified answer keeps every field")
    func aUnifiedAnswerKeepsEveryField() throws {
        let response = try parse(Self.unified)
        #expect(response.status == 0 && response.environment == .production && !response.isLegacy)
        #expect(response.bundleID == "com.example" && response.latestReceipt == "QUJD")
        #expect(response.receiptCreatedAt == Instant(milliseconds: 1_646_945_826_000))
        #expect(response.requestedAt == Instant(milliseconds: 1_646_945_826_586))
        #expect(response.inApp.map(\.path) == ["receipt.in_app[0]"])
        #expect(response.inApp.first?.expiresAt == nil)
        #expect(response.unreadableRows.isEmpty)
        let row = try #require(response.latestReceiptInfo.first)
        #expect(row.path == "latest_receipt_info[0]" && row.source == .latestReceiptInfo)
        #expect(response.inApp.first?.source == .deviceReceipt)
        #expect(row.quantity == 1 && row.productID == "monthly" && row.transactionID == "503000000000000123")
        #expect(row.originalTransactionID == "503000000000000001" && row.webOrderLineItemID == "503000000000000999")
        #expect(row.purchasedAt.milliseconds == 1_000 && row.originalPurchasedAt?.milliseconds == 500)
        #expect(row.expiresAt?.milliseconds == 2_000)
        #expect(row.cancelledAt?.milliseconds == 1_500 && row.cancellationReason == "0")
        #expect(row.isTrial == true && row.isIntro == false && row.isUpgraded)
        #expect(row.expiryForm == .milliseconds && row.cancellationForm == .milliseconds)
        #expect(row.promotionalOfferID == "promo" && row.offerCodeRefName == "code")
        #expect(row.groupID == "20" && row.ownership == .purchased)
        #expect(row.appAccountToken == "3f6c")
        let said = try #require(response.renewals.first)
        #expect(said.path == "pending_renewal_info[0]" && said.originalTransactionID == "503000000000000001")
        #expect(
            said.renewal
                == Renewal(
                    productID: "monthly", renewsToProductID: "yearly", willRenew: true, expirationIntent: "2",
                    inBillingRetry: true, graceExpiresAt: Instant(milliseconds: 3_000), priceConsentStatus: "0",
                    priceIncreaseStatus: "1", promotionalOfferID: "p", offerCodeRefName: "o"))
    }

    @Test("A legacy answer becomes rows")
    func aLegacyAnswerBecomesRows() throws {
        let row = """
            {"bid":"com.example","product_id":"monthly","transaction_id":"11","original_transaction_id":"10",
            "purchase_date_ms":"1420880400000","expires_date":"1423558800000",
            "expires_date_formatted":"2015-02-10 09:00:00 Etc/GMT"}
            """
        let expired = try parse(
            #"{"status":21006,"receipt":\#(row),"latest_expired_receipt_info":\#(row),"auto_renew_status":0,"#
                + #""expiration_intent":"1","is_in_billing_retry_period":"0"}"#)
        #expect(expired.isLegacy && expired.bundleID == "com.example" && expired.requestedAt == nil)
        #expect(expired.inApp.map(\.path) == ["receipt"])
        #expect(expired.latestReceiptInfo.map(\.path) == ["latest_expired_receipt_info"])
        #expect(expired.latestReceiptInfo.map(\.expiresAt?.milliseconds) == [1_423_558_800_000])
        let said = try #require(expired.renewals.first)
        #expect(said.path.isEmpty && said.originalTransactionID == "10")
        #expect(
            said.renewal
                == Renewal(productID: "monthly", willRenew: false, expirationIntent: "1", inBillingRetry: false))

        let object = try parse(#"{"status":0,"receipt":\#(row),"latest_receipt_info":\#(row)}"#)
        #expect(object.isLegacy && object.latestReceiptInfo.map(\.path) == ["latest_receipt_info"])
        #expect(object.renewals.isEmpty)
        let array = try parse(#"{"status":0,"receipt":\#(row),"latest_receipt_info":[\#(row)]}"#)
        #expect(array.latestReceiptInfo.map(\.path) == ["latest_receipt_info[0]"])
    }

    @Test(
        "The form of iOS 6 has no mark of an upgrade: a row cancelled as another product's period begins is replaced",
        arguments: [("yearly", 2_000, true), ("yearly", 2_999, true), ("yearly", 3_000, false), ("plus", 2_000, false)])
    func replacedInALegacyReceipt(product: String, cancelledAt: Int, isReplaced: Bool) throws {
        let old = """
            {"bid":"com.example","product_id":"\(product)","transaction_id":"11","original_transaction_id":"10",
            "purchase_date_ms":"1000","expires_date":"9000","cancellation_date_ms":"\(cancelledAt)","cancellation_reason":"0"}
            """
        let new = """
            {"product_id":"plus","transaction_id":"12","original_transaction_id":"10","purchase_date_ms":"2000",
            "expires_date":"5000"}
            """
        let response = try parse(#"{"status":0,"receipt":\#(old),"latest_receipt_info":\#(new)}"#)
        #expect(response.inApp.map(\.isUpgraded) == [isReplaced])
        #expect(response.latestReceiptInfo.map(\.isUpgraded) == [false])
        let unified = try parse(#"{"status":0,"receipt":{"in_app":[\#(old)]},"latest_receipt_info":[\#(new)]}"#)
        #expect(unified.inApp.map(\.isUpgraded) == [false], "a unified receipt says it itself")
    }

    @Test("One odd row loses no other")
    func oneOddRowLosesNoOther() throws {
        let response = try parse(
            """
            {"status":0,"latest_receipt_info":[null,{\(Self.row)},{},"text",{"product_id":"monthly"},7,{\(Self.row)}],
            "receipt":{"in_app":{\(Self.row)}},"pending_renewal_info":[{"auto_renew_status":"1"},[],{"product_id":"monthly"}]}
            """)
        #expect(response.latestReceiptInfo.map(\.path) == ["latest_receipt_info[1]", "latest_receipt_info[6]"])
        #expect(response.inApp.map(\.path) == ["receipt.in_app"])
        // The first pending row names nothing, but the answer is about one subscription only.
        #expect(response.renewals.map(\.originalTransactionID) == ["10"])
        #expect(
            response.unreadableRows == [
                "latest_receipt_info[0]", "latest_receipt_info[2]", "latest_receipt_info[3]", "latest_receipt_info[4]",
                "latest_receipt_info[5]", "pending_renewal_info[1]", "pending_renewal_info[2]",
            ])
        #expect(!response.isComplete)
        let device = try parse(#"{"status":0,"receipt":{"in_app":[7]},"latest_receipt_info":[{\#(Self.row)}]}"#)
        #expect(device.unreadableRows == ["receipt.in_app[0]"] && device.isComplete, "a device's receipt ends nothing")
    }

    @Test("Empty and missing lists are legitimate")
    func emptyAndMissingListsAreLegitimate() throws {
        for lists in [
            "", #","receipt":{"in_app":[]}"#, #","receipt":null,"latest_receipt_info":null"#,
            #","receipt":{},"latest_receipt_info":"","pending_renewal_info":[]"#,
        ] {
            let response = try parse(#"{"status":0\#(lists)}"#)
            #expect(response.inApp.isEmpty && response.latestReceiptInfo.isEmpty && response.renewals.isEmpty)
            #expect(response.unreadableRows.isEmpty && !response.isLegacy, "\(lists)")
        }
    }

    @Test("A row without its transaction keeps a period apart")
    func aRowWithoutItsTransactionKeepsAPeriodApart() throws {
        let response = try parse(
            #"{"latest_receipt_info":[{"product_id":"m","original_transaction_id":10,"purchase_date_ms":5},"#
                + #"{"product_id":"m","transaction_id":11,"purchase_date_ms":6}]}"#)
        #expect(response.latestReceiptInfo.map(\.transactionID) == ["10/5", "11"])
        #expect(response.latestReceiptInfo.map(\.originalTransactionID) == ["10", "11"])
    }

    @Test("An unnamed renewal of several subscriptions is not guessed")
    func anUnnamedRenewalOfSeveralSubscriptionsIsNotGuessed() throws {
        let response = try parse(
            #"{"latest_receipt_info":[{"product_id":"m","transaction_id":"1","purchase_date_ms":5},"#
                + #"{"product_id":"m","transaction_id":"2","purchase_date_ms":6}],"#
                + #""pending_renewal_info":[{"product_id":"m","auto_renew_status":"1"}]}"#)
        #expect(response.renewals.isEmpty && response.unreadableRows == ["pending_renewal_info[0]"])
    }

    static let unified = """
        {"status":0,"environment":"Production","latest_receipt":"QUJD","receipt":{"bundle_id":"com.example",
        "download_id":503000000000000123,"receipt_creation_date_ms":"1646945826000","request_date_ms":"1646945826586",
        "in_app":[{"product_id":"coins","transaction_id":"7","original_transaction_id":"7","purchase_date_ms":"9"}]},
        "latest_receipt_info":[{"quantity":"1","product_id":"monthly","transaction_id":503000000000000123,
        "original_transaction_id":"503000000000000001","web_order_line_item_id":503000000000000999,
        "purchase_date_ms":"1000","original_purchase_date_ms":500,"expires_date_ms":"2000","cancellation_date_ms":"1500",
        "cancellation_reason":0,"is_trial_period":"true","is_in_intro_offer_period":false,"is_upgraded":"true",
        "promotional_offer_id":"promo","offer_code_ref_name":"code","subscription_group_identifier":20,
        "in_app_ownership_type":"PURCHASED","app_account_token":"3f6c"}],
        "pending_renewal_info":[{"product_id":"monthly","auto_renew_product_id":"yearly","auto_renew_status":"1",
        "original_transaction_id":"503000000000000001","expiration_intent":2,"is_in_billing_retry_period":"1",
        "grace_period_expires_date_ms":"3000","price_consent_status":"0","price_increase_status":"1",
        "promotional_offer_id":"p","offer_code_ref_name":"o"}]}
        """
}
