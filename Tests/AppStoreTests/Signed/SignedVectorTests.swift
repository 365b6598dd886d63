import Crypto
import Foundation
import Testing

@testable import AppStore

/// Texts that others signed: Apple itself, and projects with test authorities of their own.
@Suite("Published signed texts verify or are refused as they should")
struct SignedVectorTests {
    @Test("The compiled-in root is Apple Root CA G3")
    func root() {
        let digest = SHA256.hash(data: SigningRoot.apple.bytes).map { String(format: "%02x", $0) }.joined()
        #expect(digest == "63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179")
    }

    @Test("A notification that Apple signed in 2022 verifies, after its certificates have expired")
    func apple() async throws {
        guard let text = try Fixtures.body("aporat_store-receipt-validator/test-notification.VALID.jws") else { return }
        let signed = try await SignedTextVerifier().verify(SignedText.inBody(text))
        #expect(signed.signedAt == 1_662_122_492_884)
        #expect(signed.claims.contains(SignedClaim(path: "notificationType", value: "TEST", isSigned: false)))
        #expect(signed.claims.contains(SignedClaim(path: "data.bundleId", value: "com.Abilities", isSigned: false)))
        #expect(signed.chain.subjects.count == 3 && signed.chain.subjects[2].contains("Apple Root CA - G3"))
        #expect(signed.chain.validity.contains(signed.signedAt))
    }

    @Test(
        "Texts of test authorities verify under their own roots alone",
        arguments: [
            ("transaction", "jws-root", nil), ("app-transaction", "jws-root", nil),
            ("app-transaction-production", "jws-root", nil), ("expired-cert-historical", "jws-expired-root", nil),
            ("expired-cert-fresh", "jws-expired-root", .outsideValidity),
            ("transaction-no-leaf-oid", "jws-no-leaf-oid-root", .otherPurpose),
            ("transaction-no-intermediate-oid", "jws-no-intermediate-oid-root", .otherPurpose),
            ("transaction", "jws-expired-root", .otherRoot),
        ] as [(String, String, SignedTextRefusal?)])
    func others(name: String, root: String, refusal: SignedTextRefusal?) async throws {
        let folder = "emindeniz99_apple-purchase-receipt-verifier"
        guard let body = try Fixtures.body("\(folder)/\(name).jws"),
            let root = try Fixtures.body("\(folder)/\(root).der")
        else { return }
        let text = SignedText.inBody(body)
        #expect(await refused(text, by: SignedTextVerifier(trusting: try SigningRoot(der: root))) == refusal)
        #expect(await refused(text, by: SignedTextVerifier()) == .otherRoot)
    }

    @Test(
        "What Xcode signs is not Apple's",
        arguments: ["xcode-signed-transaction", "xcode-signed-renewal-info", "xcode-signed-app-transaction"])
    func xcode(name: String) async throws {
        guard let text = try Fixtures.body("apple_app-store-server-library-swift/\(name)") else { return }
        #expect(await refused(SignedText.inBody(text), by: SignedTextVerifier()) == .otherCertificateCount(1))
    }
}

/// Returns why a text is refused; nil when it verifies.
func refused(_ text: [UInt8], by verifier: SignedTextVerifier) async -> SignedTextRefusal? {
    do {
        _ = try await verifier.verify(text)
        return nil
    } catch {
        return error
    }
}
