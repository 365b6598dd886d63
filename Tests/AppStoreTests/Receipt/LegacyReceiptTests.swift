import Foundation
import Subscriptions
import Testing

@testable import AppStore

@Suite("Receipts of iOS 6 are read, and damage has its reason") struct LegacyReceiptTests {
    static let info = """
        {
        \t"original-transaction-id" = "1000000180636226";
        \t"transaction-id" = "1000000181298734";
        \t"web-order-line-item-id" = "1000000030938713";
        \t"expires-date" = "1448346881000";
        \t"expires-date-formatted" = "2015-11-24 06:34:41 Etc/GMT";
        \t"product-id" = "yearly";
        \t"bid" = "com.example.app";
        }
        """

    static func list(_ info: String, environment: String = #""environment" = "Sandbox";"#) -> [UInt8] {
        let encoded = Data(info.utf8).base64EncodedString()
        return Array("{\n\t\"signature\" = \"AA==\";\n\t\"purchase-info\" = \"\(encoded)\";\n\t\(environment)\n}".utf8)
    }

    private func read(_ bytes: [UInt8]) throws -> LocalReceipt { try #require(LocalReading(of: bytes).receipt) }

    @Test("A property list says what is in it")
    func aPropertyListSaysWhatIsInIt() throws {
        let receipt = try read(Self.list(Self.info))
        let purchase = LocalPurchase(
            productID: "yearly", transactionID: "1000000181298734", originalTransactionID: "1000000180636226",
            webOrderLineItemID: "1000000030938713", expiresAt: 1_448_346_881_000, cancelledAt: nil)
        #expect(receipt.form == .legacy && receipt.bundleID == "com.example.app" && receipt.createdAt == nil)
        #expect(receipt.environment == "Sandbox" && receipt.store == .sandbox && receipt.purchases == [purchase])
        #expect(try read(Self.list(Self.info, environment: "")).store == nil)
    }

    @Test(
        "Expiries are read in every form",
        arguments: [
            (#""expires-date-ms" = "5"; "expires-date" = "7";"#, 5), (#""expires-date" = "7";"#, 7),
            (#""expires-date" = "2015-11-24 06:34:41 Etc/GMT";"#, 1_448_346_881_000),
            (#""expires-date" = ""; "expires-date-formatted" = "2015-11-24 06:34:41 Etc/GMT";"#, 1_448_346_881_000),
            (#""expires-date" = "-1";"#, nil), (#""expires-date" = "soon";"#, nil), ("", nil),
        ] as [(String, Int64?)])
    func expiries(_ field: String, _ expected: Int64?) throws {
        let receipt = try read(Self.list(#"{ "transaction-id" = "1"; \#(field) }"#))
        #expect(receipt.purchases.map(\.expiresAt) == [expected])
        #expect(receipt.originalTransactionIDs == ["1"])
    }

    @Test("A cancellation is read")
    func aCancellationIsRead() throws {
        for field in [#""cancellation-date-ms" = "5";"#, #""cancellation-date" = "1970-01-01 00:00:00 Etc/GMT";"#] {
            let receipt = try read(Self.list(#"{ "transaction-id" = "1"; \#(field) }"#))
            #expect(receipt.purchases.first?.cancelledAt != nil)
        }
    }

    @Test("Odd writing is passed over")
    func oddWritingIsPassedOver() throws {
        let odd = #"{ bare = 5; "transaction-id"="1";"bid" = b; "product-id" = "a\"b\\c" ; "a" "b" = "c"; "x" = "#
        let receipt = try read(Self.list(odd))
        #expect(receipt.purchases.map(\.productID) == [#"a"b\c"#] && receipt.transactionIDs == ["1"])
        // Apple's own sample has no signature; an ordinary line break inside the Base64 changes nothing.
        let broken = Data(Self.info.utf8).base64EncodedString(options: .lineLength64Characters)
        #expect(try read(Array(#"{ "purchase-info" = "\#(broken)"; }"#.utf8)).bundleID == "com.example.app")
    }

    @Test(
        "The reason is said",
        arguments: [
            (#"{ "signature" = "AA=="; }"#, "neither PKCS#7 nor an old property list"),
            (#"{ "purchase-info" = ""; }"#, "neither PKCS#7 nor an old property list"),
            (#"{ "purchase-info" = "***"; }"#, "a property list whose purchase-info is not Base64"),
            (#"{ "purchase-info" = "AAAA"; }"#, "a property list whose purchase-info names no transaction"),
        ])
    func theReasonIsStated(_ text: String, _ expected: String) {
        #expect(LocalReading(of: Array(text.utf8)) == .unreadable(expected))
    }

    @Test("Every truncation is an answer")
    func everyTruncationIsAnAnswer() {
        let list = Self.list(Self.info)
        let closed = (list.lastIndex(of: UInt8(ascii: "\"")) ?? 0) + 1
        for length in 0..<list.count {
            guard let receipt = LocalReading(of: Array(list[..<length])).receipt else { continue }
            #expect(receipt.bundleID == "com.example.app", "\(length) bytes")
            #expect((receipt.environment == nil) == (length < closed), "\(length) bytes")
        }
    }

    @Test("Pairs beyond the limit are not read")
    func pairsBeyondTheLimitAreNotRead() {
        let pairs = (0...PropertyListTexts.pairsMax).map { "\"\($0)\" = \"x\";" }.joined()
        let texts = PropertyListTexts(in: Array(pairs.utf8))
        #expect(texts["255"] == "x" && texts["256"] == nil)
    }
}
