import Crypto
import Foundation
import Subscriptions
import Testing

@testable import Tracking

@Suite("The key that signs offers is a P-256 key in PKCS#8, sealed")
struct OfferKeyTests {
    /// A key of a test, made by `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`, and its public half.
    static let pem = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgVYQeQm83dQiig3wW
        ra3Nz4Yt6n9OI0J7ZMzDzsILgGKhRANCAAT3A6pWWnrVKDEA4tdLP+M+DZgoICc/
        fS+q6CMyu9O1EXsdz7yx7bQ2GCRXLDn9oLdCPLR18W4zqhqmz7Uu9ryy
        -----END PRIVATE KEY-----
        """
    private static let publicKey =
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE9wOqVlp61SgxAOLXSz/jPg2YKCAnP30vqugjMrvTtRF7Hc+8se20NhgkVyw5/aC3Qjy0dfFuM6oaps+1Lva8sg=="

    /// What looks like a key and is none.
    private static let others = [
        "", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nno base64!\n-----END PRIVATE KEY-----",
        pem.replacing("PRIVATE KEY", with: "EC PRIVATE KEY"),
        pem.replacing("PRIVATE KEY", with: "ENCRYPTED PRIVATE KEY"),
        pem.replacing("-----END PRIVATE KEY-----", with: ""), pem + "\n" + pem, "a line before\n" + pem,
        P256.Signing.PrivateKey().publicKey.pemRepresentation, P384.Signing.PrivateKey().pemRepresentation,
        P521.Signing.PrivateKey().pemRepresentation,
        P256.Signing.PrivateKey().derRepresentation.base64EncodedString(),
        "-----BEGIN PRIVATE KEY-----\n\(P384.Signing.PrivateKey().derRepresentation.base64EncodedString())\n"
            + "-----END PRIVATE KEY-----",
    ]

    @Test("A key file is read however its lines end")
    func read() throws {
        for text in [
            Self.pem, Self.pem + "\n", "\n\(Self.pem)\r\n", Self.pem.replacing("\n", with: "\r\n"),
            P256.Signing.PrivateKey().pemRepresentation,
        ] {
            let key = try ConnectKey(pem: text, id: "2X9R4HXF34", issuer: "57246542-96fe-1a63-e053-0824d011072a")
            #expect(key.name.id == "2X9R4HXF34")
        }
        let key = try ConnectKey(pem: Self.pem, id: "K")
        #expect(key.key.publicKey.derRepresentation.base64EncodedString() == Self.publicKey)
    }

    @Test("Anything else is refused with a sentence that does not repeat it", arguments: others)
    func refused(_ text: String) {
        let error = #expect(throws: LedgerError.self) { _ = try ConnectKey(pem: text, id: "K") }
        #expect(error?.kind == .invalid && error?.message.contains("PKCS#8") == true)
        #expect(error?.message.contains("BEGIN") == false)
    }

    @Test(
        "An id has up to 64 plain characters",
        arguments: ["", "a b", "é", "a\u{2063}b", String(repeating: "a", count: 65)])
    func ids(_ id: String) throws {
        #expect(throws: LedgerError.self) { _ = try ConnectKey(pem: Self.pem, id: id) }
        #expect(throws: LedgerError.self) { _ = try ConnectKey(pem: Self.pem, id: "K", issuer: id) }
        _ = try ConnectKey(pem: Self.pem, id: String(repeating: "a", count: 64), issuer: "I")
    }

    @Test("It is stored sealed, shown by its name, replaced, removed, and every change is in the audit")
    func stored() async throws {
        try await withLedger { test in
            let (apps, app) = (test.ledger.acting(as: .user("kim")).apps, test.app.bundleID)
            #expect(try await test.appNow().offerKey == nil)
            try await apps.storeOfferKey(try ConnectKey(pem: Self.pem, id: "K1", issuer: "I"), of: app)
            #expect(try await test.appNow().offerKey == ConnectKeyName(id: "K1", issuer: "I"))
            let opened = try await apps.offerKey(of: app)
            #expect(opened.key.publicKey.derRepresentation.base64EncodedString() == Self.publicKey)
            let contents = try await test.everything().values.joined().joined(separator: "\n")
            #expect(contents.contains("K1"), "the scan sees nothing")
            for secret in [Data(Self.pem.utf8), opened.key.derRepresentation, opened.key.rawRepresentation] {
                #expect(!contents.contains(secret.map { String(format: "%02x", $0) }.joined()))
            }
            #expect(!contents.contains("PRIVATE KEY"))

            try await apps.storeOfferKey(try ConnectKey(pem: Self.pem, id: "K2"), of: app)
            #expect(try await test.appNow().offerKey == ConnectKeyName(id: "K2", issuer: nil))
            try await apps.removeOfferKey(of: app)
            #expect(try await test.appNow().offerKey == nil)
            for (kind, attempt) in [
                (.notFound, { try await apps.removeOfferKey(of: app) }),
                (.unknownApp("no.app"), { try await apps.removeOfferKey(of: "no.app") }),
                (
                    .unknownApp("no.app"),
                    { try await apps.storeOfferKey(try ConnectKey(pem: Self.pem, id: "K"), of: "no.app") }
                ),
                (.notFound, { _ = try await apps.offerKey(of: app) }),
            ] as [(LedgerError.Kind, () async throws -> Void)] {
                let error = await #expect(throws: LedgerError.self) { try await attempt() }
                #expect(error?.kind == kind)
            }
            #expect(
                try await test.rows("SELECT actor, action, detail::text FROM perennial.audit_log ORDER BY audit_id")
                    == [
                        #"user kim app.offer_key_stored {"key_id": "K1", "issuer_id": "I"}"#,
                        #"user kim app.offer_key_stored {"key_id": "K2"}"#, "user kim app.offer_key_removed {}",
                    ])
            let blind = SubscriptionLedger(database: test.database)
            let error = await #expect(throws: LedgerError.self) {
                try await blind.apps.storeOfferKey(try ConnectKey(pem: Self.pem, id: "K"), of: app)
            }
            #expect(error?.message.contains("PERENNIAL_MASTER_KEY") == true)
        }
    }
}
