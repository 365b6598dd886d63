import Foundation
import JSON
import Testing

@testable import AppStore

@Suite("Captured answers are read without a loss") struct FixtureTests {
    /// A second opinion by Foundation's parser: every row it sees was read or is named as unreadable.
    @Test("Every row of every answer is accounted for")
    func everyRowOfEveryAnswerIsAccountedFor() throws {
        var answers = 0
        for file in Fixtures.files(ending: [".json", "verifyReceiptSample1.txt"]) {
            guard let top = try? JSONSerialization.jsonObject(with: Data(file.body)) as? [String: Any] else { continue }
            let response = try VerifyReceiptResponse(parsing: file.body)
            let receipt = (top["receipt"] as? [Any])?.first ?? top["receipt"]
            let inApp = (receipt as? [String: Any])?["in_app"]
            if inApp != nil { expectRows(inApp, response.inApp.count, response, "in_app[", file.name) }
            let latest = rows(top["latest_receipt_info"]) + rows(top["latest_expired_receipt_info"])
            expectRows(latest, response.latestReceiptInfo.count, response, "latest_", file.name)
            if top["pending_renewal_info"] != nil {
                expectRows(top["pending_renewal_info"], response.renewals.count, response, "pending_", file.name)
            }
            if let status = top["status"] as? Int { #expect(response.status == status, "\(file.name)") }
            if top["status"] != nil { answers += 1 }
        }
        print("answers read: \(answers)")
        #expect(Fixtures.folder == nil || answers > 80)
    }

    @Test("No row of a captured or synthetic answer is unreadable")
    func noRowOfACapturedOrSyntheticAnswerIsUnreadable() throws {
        for file in Fixtures.files(ending: [".json", "verifyReceiptSample1.txt"]) {
            guard let response = try? VerifyReceiptResponse(parsing: file.body), response.status != nil else {
                continue
            }
            #expect(response.unreadableRows.isEmpty, "\(file.name)")
        }
    }

    /// Goldens: file, bundle, rows of the device's receipt, rows of Apple, renewals, request date.
    static let goldens: [Golden] = [
        Golden("RevenueCat_purchases-ios/verifyReceiptSample1.txt", inApp: 9, latest: 9, renewals: 1),
        Golden("imdhemy_appstore-iap/verify_receipt_response.json", inApp: 42, latest: 1, renewals: 1),
        Golden("nov_itunes-receipt/array_of_latest_receipt_info.json", inApp: 2, latest: 5, renewals: 0),
        Golden(
            "nov_itunes-receipt/autorenew_subscription_expired.json", inApp: 1, latest: 1, renewals: 0, legacy: true),
        Golden("nov_itunes-receipt/valid_application.json", inApp: 2, latest: 0, renewals: 0),
        Golden("nomad_venice/receipt_expired_cancelled.json", inApp: 1, latest: 1, renewals: 1, legacy: true),
        Golden("youknowone_itunes-iap/embedded/conftest_py.L136.json", inApp: 13, latest: 18, renewals: 1),
        Golden("carpenterscode_superscribe/response1.json", inApp: 2, latest: 2, renewals: 1),
        Golden("carpenterscode_superscribe/response2.json", inApp: 1, latest: 1, renewals: 1, legacy: true),
        Golden("synthetic/29_two-groups_one-active_one-expired.json", inApp: 1, latest: 3, renewals: 2),
        Golden("synthetic/44_150-weekly-renewals.json", inApp: 1, latest: 150, renewals: 1),
        Golden("synthetic/50_legacy_active.json", inApp: 1, latest: 1, renewals: 1, legacy: true),
        Golden("synthetic/51_legacy_expired_21006.json", inApp: 1, latest: 1, renewals: 1, legacy: true),
        Golden("synthetic/52_legacy_cancelled_reason-int.json", inApp: 1, latest: 0, renewals: 1, legacy: true),
        Golden("synthetic/40_error_21010.json", inApp: 0, latest: 0, renewals: 0),
    ]

    @Test("Rows are counted", arguments: goldens)
    func rowsAreCounted(_ golden: Golden) throws {
        guard let body = try Fixtures.body(golden.name) else { return }
        let response = try VerifyReceiptResponse(parsing: body)
        #expect(response.inApp.count == golden.inApp)
        #expect(response.latestReceiptInfo.count == golden.latest)
        #expect(response.renewals.count == golden.renewals)
        #expect(response.isLegacy == golden.legacy)
    }

    @Test("Bodies that are no answers say so")
    func bodiesThatAreNoAnswersSaySo() throws {
        for (name, reason) in [
            ("synthetic/41_error_http503_body.html", "a web page instead of JSON"),
            ("synthetic/42_error_http500_body.txt", "text that is not JSON at byte 0"),
        ] {
            guard let body = try Fixtures.body(name) else { return }
            #expect(throws: NotJSON(reason)) { try VerifyReceiptResponse(parsing: body) }
        }
        guard let torn = try Fixtures.body("synthetic/43_truncated-json_body.txt") else { return }
        #expect(throws: NotJSON("JSON that ends in the middle, after \(torn.count) bytes")) {
            try VerifyReceiptResponse(parsing: torn)
        }
    }

    @Test("Captured receipts are recognised")
    func capturedReceiptsAreRecognised() throws {
        let expected: [(String, ReceiptForm)] = [
            ("IdeasOnCanvas_AppReceiptValidator/grandUnifiedExpiredAppleCert_receipt.b64", .unified),
            ("IdeasOnCanvas_AppReceiptValidator/mindnode_ios_michaelsandbox_receipt1.b64", .unified),
            ("IdeasOnCanvas_AppReceiptValidator/purchasing_experiments_sandbox_receipt.b64", .unified),
            ("IdeasOnCanvas_AppReceiptValidator/deprecatedSinglesTypeExpiredAppleCert_receipt.b64", .legacy),
            ("RevenueCat_purchases-ios/base64EncodedReceiptSampleForDataExtension.txt", .unified),
        ]
        for (name, form) in expected {
            guard let body = try Fixtures.body(name) else { return }
            let receipt = try ReceiptData(normalising: String(decoding: body, as: UTF8.self))
            #expect(receipt.form == form, "\(name)")
            // A device that loses every plus to a space loses nothing.
            let spaced = try ReceiptData(normalising: receipt.base64.replacing("+", with: " "))
            #expect(spaced == receipt, "\(name)")
        }
        for name in ["Cocoanetics_Kvitto/receipt", "Cocoanetics_Kvitto/storeKitTestReceipt"] {
            guard let bytes = try Fixtures.body(name) else { return }
            #expect(try ReceiptData(normalising: Data(bytes).base64EncodedString()).bytes == bytes)
        }
        guard let token = try Fixtures.body("aporat_store-receipt-validator/test-notification.VALID.jws") else {
            return
        }
        #expect(throws: ReceiptDataError.signedTransaction) {
            try ReceiptData(normalising: String(decoding: token, as: UTF8.self))
        }
    }

    private func rows(_ value: Any?) -> [Any] {
        (value as? [Any]) ?? (value as? [String: Any]).map { [$0] } ?? []
    }

    private func expectRows(
        _ value: Any?, _ read: Int, _ response: VerifyReceiptResponse, _ place: String, _ name: String
    ) {
        let unreadable = response.unreadableRows.filter { $0.contains(place) }.count
        #expect(read + unreadable == rows(value).count, "\(name) \(place)")
    }
}

/// How many rows one file holds.
struct Golden: Sendable, CustomTestStringConvertible {
    let name: String
    let inApp: Int
    let latest: Int
    let renewals: Int
    let legacy: Bool

    init(_ name: String, inApp: Int, latest: Int, renewals: Int, legacy: Bool = false) {
        self.name = name
        self.inApp = inApp
        self.latest = latest
        self.renewals = renewals
        self.legacy = legacy
    }

    var testDescription: String { name }
}
