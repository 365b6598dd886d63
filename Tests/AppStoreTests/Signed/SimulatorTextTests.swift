import AppStore
import AppStoreSimulator
import Foundation
import Testing

@Suite("What the simulator signs verifies as Apple's texts do") struct SimulatorTextTests {
    @Test("Every transaction of a device verifies, and names its app, product and price")
    func transactions() async throws {
        var options = SimulatorOptions(seed: 4)
        options.customers = 30
        let store = Simulator(options)
        let verifier = SignedTextVerifier(
            trusting: try SigningRoot(TrustedRoots(pem: try store.signingAuthority().rootPEM)))
        let texts = try store.signedTransactions()
        #expect(texts.count == store.customerCount)
        for text in texts {
            let signed = try await verifier.verify(Array(text.signedTransaction.utf8))
            let claims = try JSONDecoder().decode(Claims.self, from: Data(signed.payload))
            #expect(claims.transactionId == text.transactionID && claims.bundleId == "com.example.tracker")
            #expect(
                claims.productId.hasPrefix("com.example.tracker.") && claims.environment == text.environment.rawValue)
            #expect(claims.price >= 0 && claims.currency.count == 3 && claims.signedDate == signed.signedAt)
        }
    }

    @Test("A device without receipts sends its newest transaction with each upload, signed at that time")
    func uploads() async throws {
        var options = SimulatorOptions(seed: 4)
        options.customers = 30
        let store = Simulator(options)
        let verifier = SignedTextVerifier(
            trusting: try SigningRoot(TrustedRoots(pem: try store.signingAuthority().rootPEM)))
        let (texts, uploads) = (try store.signedUploads(), store.uploads())
        #expect(texts.count == uploads.count && texts.count > 30)
        for (text, upload) in zip(texts, uploads) {
            #expect(text.customer == upload.customer && text.environment == upload.environment)
            let signed = try await verifier.verify(Array(text.signedTransaction.utf8))
            #expect(signed.signedAt == upload.at)
        }
    }

    private struct Claims: Decodable {
        let transactionId, bundleId, productId, environment, currency: String
        let price, signedDate: Int64
    }
}
