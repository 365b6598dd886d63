import Crypto
import Foundation
import SeededRandom
import Testing

@testable import PerennialClient

@Suite("The digests of the client are those of swift-crypto")
struct DigestTests {
    @Test("SHA-256 and HMAC agree for every length around the blocks")
    func agreement() {
        var random = Seeded(seed: 6)
        for length in 0...260 {
            let message = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            let key = (0..<length / 2).map { _ in UInt8.random(in: 0...255, using: &random) }
            #expect(Digest.sha256(message) == Array(SHA256.hash(data: message)), "\(length) bytes")
            let code = HMAC<SHA256>.authenticationCode(for: message, using: SymmetricKey(data: key))
            #expect(Digest.hmac(message, key: key) == Array(code), "\(length) bytes")
        }
    }

    @Test("A known digest is printed in lower-case hex")
    func known() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        #expect(Digest.hex(Digest.sha256([])) == empty)
    }

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
