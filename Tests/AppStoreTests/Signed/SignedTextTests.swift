import AppStoreSimulator
import Foundation
import Synchronization
import Testing

@testable import AppStore

@Suite("A text counts only if it was signed as it is, by a marked chain under the root, while that was valid")
struct SignedTextTests {
    private static let now = Int64(Date().timeIntervalSince1970 * 1_000)
    private static let payload = Array(#"{"transactionId":"1","signedDate":\#(now)}"#.utf8)

    private let authority: SigningAuthority
    private let verifier: SignedTextVerifier

    init() throws {
        authority = try SigningAuthority()
        verifier = try Self.verifier(of: authority)
    }

    private static func verifier(of authority: SigningAuthority) throws -> SignedTextVerifier {
        SignedTextVerifier(trusting: try SigningRoot(der: authority.certificates[2]))
    }

    private func refusal(of text: String) async -> SignedTextRefusal? {
        await refused(Array(text.utf8), by: verifier)
    }

    @Test("A signed text says what it says, and when")
    func verifies() async throws {
        let signed = try await verifier.verify(Array(try authority.sign(Self.payload).utf8))
        #expect(signed.payload == Self.payload && signed.signedAt == Self.now)
        #expect(signed.claims.map(\.path) == ["transactionId", "signedDate"])
    }

    @Test("A body is the text itself, or holds it as signedPayload")
    func bodies() throws {
        let text = try authority.sign(Self.payload)
        #expect(SignedText.inBody(Array("\n \(text)\r\n".utf8)) == Array(text.utf8))
        #expect(SignedText.inBody(Array(#"{"signedPayload":"\#(text)"}"#.utf8)) == Array(text.utf8))
        #expect(SignedText.inBody(Array(#"{"password":"x"}"#.utf8)).isEmpty && SignedText.inBody([]).isEmpty)
    }

    @Test("What is altered after it was signed is refused")
    func altered() async throws {
        let parts = try authority.sign(Self.payload).split(separator: ".").map(String.init)
        let other = try authority.sign(Array(#"{"transactionId":"2","signedDate":\#(Self.now)}"#.utf8))
        let foreign = try SigningAuthority().sign(Self.payload).split(separator: ".").map(String.init)
        let otherParts = other.split(separator: ".").map(String.init)
        #expect(await refusal(of: "\(parts[0]).\(otherParts[1]).\(parts[2])") == .wrongSignature)
        #expect(await refusal(of: "\(parts[0]).\(parts[1]).\(otherParts[2])") == .wrongSignature)
        #expect(await refusal(of: "\(parts[0]).\(parts[1]).\(foreign[2])") == .wrongSignature)
        #expect(await refusal(of: foreign.joined(separator: ".")) == .otherRoot)
    }

    @Test("Another spelling of a text is no signed text")
    func spellings() async throws {
        let parts = try authority.sign(Self.payload).split(separator: ".").map(String.init)
        let text = parts.joined(separator: ".")
        for wrong in [
            "", ".", "..", "a.b", text + ".", "." + text, text + "=", text + "\n", " " + text,
            parts[0] + "." + parts[1],
            "\(parts[0]).\(parts[1])=.\(parts[2])", "\(parts[0]).\(parts[1])+.\(parts[2])",
        ] {
            let refusal = await refusal(of: wrong)
            #expect(refusal == .notCompact || refusal == .unreadableHeader, "\(wrong.prefix(20))…")
        }
        #expect(await refusal(of: "\(parts[0]).\(parts[1]).\(parts[2].dropLast(2))") == .wrongSignature)
        #expect(Base64URL.decoded(Array("QQ".utf8)) == [65] && Base64URL.decoded(Array("QR".utf8)) == nil)
    }

    @Test("Texts have limits")
    func limits() async throws {
        let long = Array(#"{"signedDate":\#(Self.now),"x":"\#(String(repeating: "x", count: 200_000))"}"#.utf8)
        #expect(await refusal(of: try authority.sign(long)) == .tooLong)
        let header = authority.header.dropLast() + Array(#","x":"\#(String(repeating: "x", count: 16_000))"}"#.utf8)
        #expect(await refusal(of: try authority.sign(Self.payload, header: Array(header))) == .tooLong)
    }

    @Test("Only ES256 with three certificates in standard Base64 is read")
    func headers() async throws {
        let chain = authority.certificates.map { Data($0).base64EncodedString() }
        func header(_ algorithm: String, _ chain: [String], _ more: String = "") -> [UInt8] {
            let list = chain.map { "\"\($0)\"" }.joined(separator: ",")
            return Array(#"{"alg":"\#(algorithm)","x5c":[\#(list)]\#(more)}"#.utf8)
        }
        let headers: [([UInt8], SignedTextRefusal?)] = [
            (header("ES256", chain, #","kid":"any""#), nil), (header("none", chain), .otherAlgorithm),
            (header("HS256", chain), .otherAlgorithm), (header("ES384", chain), .otherAlgorithm),
            (header("ES256", chain, #","crit":["b64"]"#), .unreadableHeader),
            (header("ES256", Array(chain.prefix(2))), .otherCertificateCount(2)),
            (header("ES256", chain + chain.suffix(1)), .otherCertificateCount(4)),
            (header("ES256", []), .otherCertificateCount(0)),
            (header("ES256", [chain[1], chain[0], chain[2]]), .untrustedChain),
            (header("ES256", [chain[0], chain[2], chain[1]]), .otherRoot),
            (header("ES256", [chain[0], chain[2], chain[2]]), .untrustedChain),
            (header("ES256", ["AAAA", chain[1], chain[2]]), .unreadableCertificate),
            (header("ES256", ["?", chain[1], chain[2]]), .unreadableCertificate),
            (Array("{}".utf8), .unreadableHeader), (Array("[]".utf8), .unreadableHeader),
            (Array(#"{"alg":"ES256"}"#.utf8), .unreadableHeader),
        ]
        for (header, expected) in headers {
            let text = try authority.sign(Self.payload, header: header)
            #expect(await refusal(of: text) == expected, "\(String(decoding: header.prefix(40), as: UTF8.self))")
        }
    }

    @Test("A chain without Apple's marks, and a signer that may issue certificates, are refused")
    func purposes() async throws {
        var (unmarked, unmarkedIssuer, authorities) = (ChainTraits(), ChainTraits(), ChainTraits())
        unmarked.isSignerMarked = false
        unmarkedIssuer.isIssuerMarked = false
        authorities.isSignerAuthority = true
        for traits in [unmarked, unmarkedIssuer, authorities] {
            let other = try SigningAuthority(traits)
            let text = Array(try other.sign(Self.payload).utf8)
            #expect(await refused(text, by: try Self.verifier(of: other)) == .otherPurpose)
        }
    }

    @Test("The certificates must be valid when the text was signed, whenever it arrives")
    func validity() async throws {
        var traits = ChainTraits()
        traits.signerDays = -700 ... -300
        let old = try SigningAuthority(traits)
        let verifier = try Self.verifier(of: old)
        for (daysAgo, expected) in [(600, nil), (200, .outsideValidity), (750, .outsideValidity)]
            as [(Int64, SignedTextRefusal?)]
        {
            let text = try old.sign(Array(#"{"signedDate":\#(Self.now - daysAgo * 86_400_000)}"#.utf8))
            #expect(await refused(Array(text.utf8), by: verifier) == expected, "\(daysAgo) days ago")
        }
    }

    @Test(
        "A payload is a JSON object with the date of its signature",
        arguments: [
            ("[]", .unreadablePayload), ("", .unreadablePayload), ("{", .unreadablePayload), ("{}", .undated),
            (#"{"signedDate":null}"#, .undated), (#"{"signedDate":"soon"}"#, .undated),
            (#"{"signedDate":-5}"#, .undated), (#"{"receiptCreationDate":\#(now)}"#, nil),
            (#"{"signedDate":"\#(now)"}"#, nil),
        ] as [(String, SignedTextRefusal?)])
    func payloads(payload: String, expected: SignedTextRefusal?) async throws {
        #expect(await refusal(of: try authority.sign(Array(payload.utf8))) == expected)
    }

    @Test("A chain is remembered once it signed something, and the memory is bounded")
    func memory() async throws {
        let text = try authority.sign(Self.payload)
        let parts = text.split(separator: ".").map(String.init)
        #expect(await refusal(of: "\(parts[0]).\(parts[1]).\(String(repeating: "A", count: 86))") == .wrongSignature)
        #expect(verifier.chains.count == 0)
        for _ in 0..<3 { #expect(await refusal(of: text) == nil) }
        #expect(verifier.chains.count == 1)
        for number in 0..<70 {
            let header = authority.header.dropLast() + Array(#","kid":"\#(number)"}"#.utf8)
            #expect(await refusal(of: try authority.sign(Self.payload, header: Array(header))) == nil)
        }
        #expect(verifier.chains.count == VerifiedChains.chainsMax)
    }

    @Test("A header that names no chain of three certificates is refused for that, whether or not chains are admitted")
    func headerFirst() async throws {
        let text = try authority.sign(Self.payload, header: Array(#"{"alg":"HS256","x5c":[]}"#.utf8))
        await #expect(throws: SignedTextRefusal.otherAlgorithm) {
            try await Self.verifier(of: authority).verify(Array(text.utf8)) { false }
        }
    }

    @Test("Texts that come under a new chain at the same time wait for one verification of it")
    func burst() async throws {
        let texts = try (0..<64).map { try authority.sign(Array(#"{"number":\#($0),"signedDate":\#(Self.now)}"#.utf8)) }
        let fresh = try Self.verifier(of: authority)
        let budget = OneChain()
        let verified = await withTaskGroup(of: Bool.self) { group in
            for text in texts {
                group.addTask {
                    (try? await fresh.verify(Array(text.utf8), admittingChain: budget.take)) != nil
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(verified == texts.count)
        #expect(fresh.chains.count == 1)
    }

    @Test("Each reason for a refusal has a text that is refused by it")
    func vectors() async throws {
        let parts = try authority.sign(Self.payload).split(separator: ".").map(String.init)
        var unmarked = ChainTraits()
        unmarked.isSignerMarked = false
        let chain = authority.certificates.map { "\"\(Data($0).base64EncodedString())\"" }
        func headed(_ algorithm: String, _ chain: [String]) throws -> String {
            try authority.sign(
                Self.payload, header: Array(#"{"alg":"\#(algorithm)","x5c":[\#(chain.joined(separator: ","))]}"#.utf8))
        }
        let other = try SigningAuthority(unmarked)
        let vectors: [(text: String, expected: SignedTextRefusal)] = [
            (String(repeating: "A", count: CompactText.bytesMax + 1), .tooLong), ("no text", .notCompact),
            ("e30." + parts[1] + "." + parts[2], .unreadableHeader), (try headed("none", chain), .otherAlgorithm),
            (try headed("ES256", [chain[0]]), .otherCertificateCount(1)),
            (try headed("ES256", ["\"AAAA\"", chain[1], chain[2]]), .unreadableCertificate),
            (try SigningAuthority().sign(Self.payload), .otherRoot),
            (try headed("ES256", [chain[1], chain[0], chain[2]]), .untrustedChain),
            ("\(parts[0]).\(parts[1]).\(String(repeating: "A", count: 86))", .wrongSignature),
            (try authority.sign(Array("[]".utf8)), .unreadablePayload),
            (try authority.sign(Array("{}".utf8)), .undated),
            (try authority.sign(Array(#"{"signedDate":1000000000000}"#.utf8)), .outsideValidity),
        ]
        for (text, expected) in vectors { #expect(await refusal(of: text) == expected, "\(text.prefix(40))") }
        #expect(
            await refused(Array(try other.sign(Self.payload).utf8), by: try Self.verifier(of: other)) == .otherPurpose)
        await #expect(throws: SignedTextRefusal.tooManyChains) {
            try await Self.verifier(of: other).verify(Array(parts.joined(separator: ".").utf8)) { false }
        }
        let reasons = vectors.map(\.expected) + [.otherPurpose, .tooManyChains]
        #expect(Set(reasons.map(Self.number)).count == 14 && Set(reasons.map(\.sentence)).count == 14)
    }

    /// A number for each reason; a new one does not compile until it has a vector.
    private static func number(of refusal: SignedTextRefusal) -> Int {
        switch refusal {
        case .tooLong: 1
        case .notCompact: 2
        case .unreadableHeader: 3
        case .otherAlgorithm: 4
        case .otherCertificateCount: 5
        case .unreadableCertificate: 6
        case .otherRoot: 7
        case .untrustedChain: 8
        case .otherPurpose: 9
        case .wrongSignature: 10
        case .unreadablePayload: 11
        case .undated: 12
        case .outsideValidity: 13
        case .tooManyChains: 14
        }
    }
}

/// Allows one verification of a chain.
private final class OneChain: Sendable {
    private let isTaken = Mutex(false)

    @Sendable func take() -> Bool {
        isTaken.withLock { isTaken in
            defer { isTaken = true }
            return !isTaken
        }
    }
}
