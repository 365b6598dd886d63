import Foundation
import Subscriptions
import Testing
import Tracking

@testable import Server

@Suite("A notification is read without trust in its content")
struct NotificationBodyTests {
    /// A text that is signed in form.
    static func signed(_ payload: String) -> String {
        let middle = Data(payload.utf8).base64EncodedString()
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        return "eyJhbGciOiJFUzI1NiJ9.\(middle).c2lnbmF0dXJl"
    }

    static let versionTwo = """
        {"signedPayload":"\(signed(#"""
            {"notificationType":"REFUND","subtype":"x","notificationUUID":"0b1c-ü?>","version":"2.0","data":{"bundleId":
            "com.example.app","environment":"Production","signedTransactionInfo":"\#(signed(
                #"{"originalTransactionId":"1000","bundleId":"com.example.app"}"#))"}}
            """#))"}
        """

    private func hint(_ body: String) throws -> UnverifiedNotification {
        try UnverifiedNotification(notification: Array(body.utf8))
    }

    @Test("Version 2 names its kind, app, environment and subscription, and is kept as it came")
    func versionTwo() throws {
        #expect(
            try hint(Self.versionTwo)
                == UnverifiedNotification(
                    version: .two, kind: "REFUND", subkind: "x", appleID: "0b1c-ü?>", bundleID: "com.example.app",
                    environment: .production, originalTransactionID: "1000", body: Self.versionTwo))
    }

    @Test("A password beside a signed payload is not kept either")
    func versionTwoWithPassword() throws {
        let body = Self.versionTwo.replacing("{\"signedPayload\"", with: #"{"password":"hush","signedPayload""#)
        let found = try hint(body)
        #expect(found.kind == "REFUND" && found.originalTransactionID == "1000")
        #expect(!found.body.contains("hush") && found.body.contains("redacted") && found.body.contains("signedPayload"))
    }

    @Test("Without a transaction the renewal names the subscription; without data there is none")
    func versionTwoParts() throws {
        let renewal = Self.signed(#"{"originalTransactionId":"2000","environment":"Sandbox"}"#)
        let body = Self.signed(#"{"notificationType":"EXPIRED","data":{"signedRenewalInfo":"\#(renewal)"}}"#)
        let found = try hint(#"{"signedPayload":"\#(body)"}"#)
        #expect(found.originalTransactionID == "2000" && found.environment == .sandbox && found.bundleID == nil)
        let summary = Self.signed(
            #"{"notificationType":"RENEWAL_EXTENSION","summary":{"bundleId":"b","environment":"Production"}}"#)
        let mass = try hint(#"{"signedPayload":"\#(summary)"}"#)
        #expect(mass.bundleID == "b" && mass.environment == .production && mass.originalTransactionID == nil)
        let test = try hint(#"{"signedPayload":"\#(Self.signed(#"{"notificationType":"TEST"}"#))"}"#)
        #expect(test.kind == "TEST" && test.environment == nil && test.appleID == nil)
    }

    @Test("Version 1 names the subscription at the top, else in the newest row, and PROD is production")
    func versionOne() throws {
        let rows = """
            "unified_receipt":{"environment":"Production","latest_receipt_info":[
              {"original_transaction_id":"1","purchase_date_ms":"5"},
              {"original_transaction_id":"2","purchase_date_ms":"70"},
              {"original_transaction_id":"3","purchase_date_ms":"6"}]}
            """
        let newest = try hint(#"{"notification_type":"CANCEL","bid":"com.example.app","environment":"PROD",\#(rows)}"#)
        #expect(newest.originalTransactionID == "2" && newest.environment == .production)
        #expect(newest.version == .one && newest.appleID == nil && newest.bundleID == "com.example.app")
        let top = try hint(#"{"notification_type":"REFUND","original_transaction_id":230000999000111,\#(rows)}"#)
        #expect(top.originalTransactionID == "230000999000111" && top.environment == .production)
        let legacy = try hint(
            #"{"notification_type":"RENEWAL","environment":"Sandbox","latest_receipt_info":{"original_transaction_id":"9"}}"#
        )
        #expect(legacy.originalTransactionID == "9" && legacy.environment == .sandbox)
    }

    @Test("A password is blackened wherever it stands and however it is spelt; everything else stays")
    func passwords() throws {
        let body = #"""
            {"notification_type":"DID_RENEW","pass\u0077ord":"s3cret-1","auto_renew_status":"true","n":230000999000111,
             "unified_receipt":{"Password":{"inner":"s3cret-2"},"status":0,"list":[{"password":"s3cret-3"}]}}
            """#
        let kept = try hint(body).body
        #expect(!kept.contains("s3cret"))
        let object = try #require(try JSONSerialization.jsonObject(with: Data(kept.utf8)) as? [String: Any])
        #expect(object["password"] as? String == "redacted" && object["auto_renew_status"] as? String == "true")
        #expect(kept.contains("230000999000111") && kept.contains(#""status":0"#))
        let plain = #"{ "notification_type" : "TEST", "x": 1.50 }"#
        #expect(try hint(plain).body == plain)
    }

    @Test(
        "What is no notification is refused",
        arguments: [
            "", "null", "[]", "{}", "\"x\"", "{", #"{"signedPayload":""}"#, #"{"signedPayload":"a.b"}"#,
            #"{"signedPayload":"a.b.c"}"#, #"{"signedPayload":"..."}"#, #"{"signedPayload":17}"#,
            #"{"signedPayload":"\#(signed("[]"))"}"#, #"{"signedPayload":"\#(signed(#"{"notificationType":""}"#))"}"#,
            #"{"notification_type":null}"#, #"{"notification_type":""}"#, "\u{FEFF}{\"notification_type\":\"TEST\"}",
            #"{"notification_type":"\#(String(repeating: "x", count: 65))"}"#,
            #"{"notification_type":"a\u0000b"}"#,
            String(repeating: "[", count: 100_000),
            #"{"notification_type":"#
                + String(repeating: #"{"a":"#, count: 5_000) + "1" + String(repeating: "}", count: 5_001),
        ])
    func refused(body: String) throws {
        let problem = #expect(throws: Problem.self) { try hint(body) }
        #expect(problem?.kind == .invalid)
    }

    @Test("Whatever bytes come, they are read or refused", arguments: [1, 2, 3] as [UInt64])
    func rubbish(seed: UInt64) throws {
        print("seed \(seed)")
        var state = seed &* 0x9E37_79B9_7F4A_7C15
        func next() -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33)
        }
        var (read, refused) = (0, 0)
        for _ in 0..<2_000 {
            var bytes = Array(Self.versionTwo.utf8)
            for _ in 0..<(next() % 3) { bytes[next() % bytes.count] = UInt8(truncatingIfNeeded: next()) }
            if next() % 4 == 0 { bytes.removeLast(next() % bytes.count) }
            do {
                let hint = try UnverifiedNotification(notification: bytes)
                #expect(!hint.kind.isEmpty && hint.kind.utf8.count <= 64)
                read += 1
            } catch {
                refused += 1
            }
        }
        #expect(read > 100 && refused > 100)
    }
}
