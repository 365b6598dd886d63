import AppStoreSimulator
import Foundation
import Subscriptions
import Testing

@testable import AppStore

@Suite("A notification is stored small and comes back byte for byte")
struct PackedNotificationTests {
    @Test("A packed notification is a quarter of its body, and comes back as it was")
    func roundTrip() throws {
        let authority = try SigningAuthority()
        let transaction = try authority.sign(
            Array(
                #"{"transactionId":"1","productId":"p","purchaseDate":5,"signedDate":5,"note":"\#(filler(700))"}"#.utf8)
        )
        let renewal = try authority.sign(
            Array(#"{"originalTransactionId":"1","productId":"p","signedDate":5,"note":"\#(filler(400))"}"#.utf8))
        let payload =
            #"{"notificationType":"DID_RENEW","notificationUUID":"u","signedDate":5,"data":{"status":1,"#
            + #""signedTransactionInfo":"\#(transaction)","signedRenewalInfo":"\#(renewal)"}}"#
        let text = Array(try authority.sign(Array(payload.utf8)).utf8)
        let headers = PackedNotification.headers(of: text, [transaction, renewal])
        #expect(headers.count == 1)
        let header = try #require(headers.first)
        let packed = try #require(PackedNotification.packed(text, numbers: [header: 7]))
        #expect(packed.count * 4 <= text.count, "\(packed.count) of \(text.count) bytes")
        #expect(PackedNotification.restored(packed, headers: [7: header]) == text)
        #expect(PackedNotification.restored(packed, headers: [8: header]) == nil)
        let read = try #require(SignedNotification(packed: packed))
        #expect(
            read.kind == "DID_RENEW" && read.transaction?.row.transactionID == "1"
                && read.renewal?.row.renewal.productID == "p")
        #expect(PackedNotification.packed(Array("a.b".utf8), numbers: [:]) == nil)
    }

    @Test("Kept claims say what the texts said")
    func claims() throws {
        let claims = #"""
            {"notification":{"notificationType":"REFUND","notificationUUID":"u","signedDate":5,"data":{"status":5}},
             "transaction":{"transactionId":"1","productId":"p","purchaseDate":5,"signedDate":5.4}}
            """#
        let read = try #require(SignedNotification(claims: claims))
        #expect(
            read.kind == "REFUND" && read.status == 5 && read.transaction?.row.asOf.milliseconds == 5
                && read.renewal == nil)
        #expect(SignedNotification(claims: "[]") == nil && SignedNotification(claims: "{}") == nil)
    }

    private func filler(_ count: Int) -> String { String(repeating: "x", count: count) }
}
