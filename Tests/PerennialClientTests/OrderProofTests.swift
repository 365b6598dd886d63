import Crypto
import Foundation
import Testing

@testable import PerennialClient

@Suite("An order's proofs are what the server expects")
struct OrderProofTests {
    @Test("An order's proofs are over the texts that the server expects")
    func proofs() throws {
        let key = Data(0..<32)
        let order = try PlacedOrder.sample(key: key.base64EncodedString())
        func expected(_ text: String) -> String {
            HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: SymmetricKey(data: key))
                .map { String(format: "%02x", $0) }.joined()
        }
        let receipt = Data("a receipt".utf8)
        let digest = SHA256.hash(data: receipt).map { String(format: "%02x", $0) }.joined()
        #expect(try order.proof(ofReceipt: receipt) == expected("\(order.id).\(digest)"))
        #expect(try order.proof(.failed, code: "2") == expected("\(order.id).failed.2"))
        #expect(try order.proof(.deferred, code: nil) == expected("\(order.id).deferred."))
        // The vector of docs/purchases.md.
        let documented = try PlacedOrder.sample(
            id: "6f1f6a0e-5a51-4a43-9d35-1d3b7f4a1b11", key: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
        #expect(
            try documented.proof(ofReceipt: Data("not a real receipt".utf8))
                == "b099d72f85cad5aff4c8992685b45d917f723aa82a108ae6217c2b38d007d213")
        #expect(
            try documented.proof(.failed, code: "2")
                == "53ae4bfbf56dd15132fc651b7a738a4575c0cf9b456e816bf746d06d501c223b")
        let damaged = try PlacedOrder.sample(key: "no Base64!")
        #expect(throws: PerennialError.self) { try damaged.proof(ofReceipt: receipt) }
        #expect("\(order)".contains(order.id) && !"\(order)".contains(order.key))
    }
}

extension PlacedOrder {
    /// An order with a key.
    static func sample(id: String = "0c1d", key: String = Data(0..<32).base64EncodedString()) throws -> PlacedOrder {
        try JSONDecoder().decode(
            PlacedOrder.self,
            from: Data(
                """
                {"order_id":"\(id)","key":"\(key)","app_account_token":"t","state":"created",
                 "expires_at":"2026-11-25T12:00:00.000Z"}
                """.utf8))
    }
}
