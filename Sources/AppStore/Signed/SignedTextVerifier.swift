package import Crypto
import Foundation
package import JSON

/// Verifies signed texts: of notifications, of the Server API and of devices (Apple: "JWSTransaction",
/// "JWSDecodedHeader"). A chain is verified once and then remembered; each text costs one signature.
package struct SignedTextVerifier: Sendable {
    private let root: SigningRoot
    let chains = VerifiedChains()

    /// Creates a verifier that trusts one root.
    package init(trusting root: SigningRoot = .apple) { self.root = root }

    /// Verifies a text in compact form; throws ``SignedTextRefusal`` unless this very text was signed under the root.
    /// A chain that is not known costs much more than a signature; `admits` may refuse to verify one now. Texts that come
    /// with the same unknown chain at the same time wait for one verification.
    package func verify(
        _ text: [UInt8], admittingChain admits: @Sendable () -> Bool = { true }
    ) async throws(SignedTextRefusal) -> SignedText {
        let text = try CompactText(text)
        let chain: SignerChain
        if let known = chains.chain(of: text.header) {
            chain = known
            try Self.requireSignature(of: text, by: known)
        } else {
            chain = try await newChain(of: text, admits)
        }
        let signedAt = try Self.date(of: text.payload)
        guard chain.validity.contains(signedAt) else { throw .outsideValidity }
        return SignedText(payload: text.payload, signedAt: signedAt, chain: chain)
    }

    /// Verifies and remembers a chain that was not known. A header without a chain is refused before `admits` is asked.
    private func newChain(
        of text: CompactText, _ admits: () -> Bool
    ) async throws(SignedTextRefusal) -> SignerChain {
        let certificates = try SignerChain.certificates(inHeader: text.header)
        let verification = chains.verification(of: text.header, admits: admits) { [root] in
            do throws(SignedTextRefusal) {
                return .success(try await SignerChain(certificates, trusting: root))
            } catch {
                return .failure(error)
            }
        }
        guard let verification else { throw .tooManyChains }
        defer { chains.endVerification(of: text.header) }
        let chain = try await verification.value.get()
        try Self.requireSignature(of: text, by: chain)
        // Only a signed header is remembered, so that others cannot fill the memory.
        chains.remember(chain, of: text.header)
        return chain
    }

    private static func requireSignature(of text: CompactText, by chain: SignerChain) throws(SignedTextRefusal) {
        guard let signature = try? P256.Signing.ECDSASignature(rawRepresentation: text.signature),
            chain.key.isValidSignature(signature, for: text.signed)
        else { throw .wrongSignature }
    }

    /// Returns when a payload was signed. An app transaction has no `signedDate`.
    private static func date(of payload: [UInt8]) throws(SignedTextRefusal) -> Int64 {
        guard let claims = JSONObject(payload) else { throw .unreadablePayload }
        let name = claims.states("signedDate") ? "signedDate" : "receiptCreationDate"
        guard let date = claims.integer(name), LenientInstant.believable(date) != nil else { throw .undated }
        return date
    }
}

/// A text that Apple signed: what it says, when, and by which chain.
package struct SignedText: Sendable {
    /// The payload, a JSON object.
    package let payload: [UInt8]
    /// When it was signed, in milliseconds since 1970: `signedDate`, or `receiptCreationDate` of an app transaction.
    package let signedAt: Int64
    /// The chain of the key that signed it.
    package let chain: SignerChain

    /// Returns the signed text in a request's body: `signedPayload` of a JSON object, or the whole body, trimmed.
    package static func inBody(_ body: [UInt8]) -> [UInt8] {
        if let fields = JSONObject(body) { return Array((fields.text("signedPayload") ?? "").utf8) }
        guard let first = body.firstIndex(where: { !$0.isWhiteSpace }),
            let last = body.lastIndex(where: { !$0.isWhiteSpace })
        else { return [] }
        return Array(body[first...last])
    }
}

/// Why a text does not count as signed by Apple.
package enum SignedTextRefusal: Error, Sendable, Hashable {
    /// It is longer than a signed text may be.
    case tooLong
    /// It does not consist of header, payload and signature in base64url, without padding, joined by two dots.
    case notCompact
    /// Its header is no JSON with an algorithm and a list of certificates, or it has extensions that must be understood.
    case unreadableHeader
    /// Its header names another algorithm than ES256.
    case otherAlgorithm
    /// Its header has another number of certificates than three. Texts of Xcode have one.
    case otherCertificateCount(Int)
    /// A certificate is no X.509 certificate in DER form and standard Base64, or its key is of another kind.
    case unreadableCertificate
    /// Its last certificate is not the root that is trusted.
    case otherRoot
    /// A certificate was not issued by the next one, or breaks a rule of chains.
    case untrustedChain
    /// A certificate lacks Apple's mark for its purpose.
    case otherPurpose
    /// The signature is not of this header and payload by this chain's key.
    case wrongSignature
    /// The payload is no JSON object.
    case unreadablePayload
    /// The payload does not say when it was signed.
    case undated
    /// A certificate was not valid when the payload was signed.
    case outsideValidity
    /// Too many texts with unknown chains came at once. It says nothing about the text: it may come again.
    case tooManyChains

    /// The refusal as one sentence.
    package var sentence: String {
        switch self {
        case .tooLong:
            "It is longer than \(CompactText.bytesMax) bytes, or its header than \(CompactText.headerBytesMax)."
        case .notCompact: "It is no signed text: three parts in base64url, joined by dots."
        case .unreadableHeader: "Its header cannot be read."
        case .otherAlgorithm: "It is not signed with ES256."
        case .otherCertificateCount(let count):
            "Its header has \(count) certificate\(count == 1 ? "" : "s") instead of three; Apple's App Store did not sign it."
        case .unreadableCertificate: "A certificate in its header cannot be read."
        case .otherRoot: "Its chain does not end in the root that is trusted."
        case .untrustedChain: "Its chain does not hold: a certificate was not issued by the next one."
        case .otherPurpose: "Its certificates are not for signing App Store texts."
        case .wrongSignature: "The signature does not fit the text."
        case .unreadablePayload: "Its payload is no JSON object."
        case .undated: "It does not say when it was signed."
        case .outsideValidity: "A certificate was not valid when it was signed."
        case .tooManyChains: "Too many texts with unknown certificates come at once; send it again."
        }
    }
}

extension SignerChain {
    /// Returns the certificates in an encoded header in DER form: the signer's, its issuer's and the root's. Throws
    /// ``SignedTextRefusal`` unless it is ES256 with three certificates.
    static func certificates(inHeader encoded: ArraySlice<UInt8>) throws(SignedTextRefusal) -> [[UInt8]] {
        guard let text = Base64URL.decoded(encoded).flatMap(JSONDocument.init(object:)) else { throw .unreadableHeader }
        let members = text.members(JSONDocument.root)
        guard members["crit"] == nil, let algorithm = members["alg"].flatMap(text.scalar),
            let chain = members["x5c"], text.nodes[chain].isArray
        else { throw .unreadableHeader }
        guard algorithm == "ES256" else { throw .otherAlgorithm }
        let elements = text.elements(chain)
        guard elements.count == 3 else { throw .otherCertificateCount(elements.count) }
        let certificates = elements.compactMap { text.scalar($0).flatMap { StandardBase64.decoded($0.utf8) } }
        guard certificates.count == elements.count else { throw .unreadableCertificate }
        return certificates
    }
}

/// A signed text in the compact form (RFC 7515, section 7.1), taken apart and not verified.
package struct CompactText: Sendable {
    /// The longest text. A page of Apple's has texts of some 5,400 bytes.
    static let bytesMax = 256 << 10
    /// The longest header. Apple's has some 4,400 bytes.
    static let headerBytesMax = 16 << 10
    private static let signatureBytes = 64

    /// The header as it was sent. Texts with equal headers have one chain.
    package let header: ArraySlice<UInt8>
    /// Header and payload as they were sent: what is signed.
    package let signed: ArraySlice<UInt8>
    /// The decoded payload.
    package let payload: [UInt8]
    /// r and s.
    package let signature: [UInt8]

    /// Returns a text that a key of ours signs with ES256.
    package static func signed(
        _ header: JSONValue, _ claims: JSONValue, with key: P256.Signing.PrivateKey
    ) throws -> String {
        let signed = [header, claims].map { Base64URL.encoded(JSONText($0).bytes) }.joined(separator: ".")
        return "\(signed).\(Base64URL.encoded(try key.signature(for: Data(signed.utf8)).rawRepresentation))"
    }

    /// Takes a text apart; throws ``SignedTextRefusal`` for anything but the strict form.
    package init(_ text: [UInt8]) throws(SignedTextRefusal) {
        guard text.count <= Self.bytesMax else { throw .tooLong }
        let parts = text.split(separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty else { throw .notCompact }
        guard parts[0].count <= Self.headerBytesMax else { throw .tooLong }
        guard let payload = Base64URL.decoded(parts[1]), let signature = Base64URL.decoded(parts[2]) else {
            throw .notCompact
        }
        guard signature.count == Self.signatureBytes else { throw .wrongSignature }
        header = parts[0]
        signed = text[..<parts[1].endIndex]
        self.payload = payload
        self.signature = signature
    }
}

/// Base64url without padding (RFC 7515, section 2), in its only spelling.
enum Base64URL {
    static func encoded(_ bytes: some Collection<UInt8>) -> String {
        let standard = Data(bytes).base64EncodedString().utf8.prefix { $0 != UInt8(ascii: "=") }
        return String(decoding: standard.map(otherAlphabet), as: UTF8.self)
    }

    /// Returns the bytes; nil for another character, for padding, and where unused bits are set.
    static func decoded(_ text: some Collection<UInt8>) -> [UInt8]? {
        guard !text.isEmpty else { return [] }
        let padding = [UInt8](repeating: UInt8(ascii: "="), count: (4 - text.count % 4) % 4)
        guard let bytes = StandardBase64.decoded(text.map(otherAlphabet) + padding),
            encoded(bytes.suffix(bytes.count % 3)).utf8.elementsEqual(text.suffix(text.count % 4))
        else { return nil }
        return bytes
    }

    /// Exchanges the two letters in which this alphabet and the standard one differ.
    private static func otherAlphabet(_ letter: UInt8) -> UInt8 {
        switch letter {
        case UInt8(ascii: "+"): UInt8(ascii: "-")
        case UInt8(ascii: "-"): UInt8(ascii: "+")
        case UInt8(ascii: "/"): UInt8(ascii: "_")
        case UInt8(ascii: "_"): UInt8(ascii: "/")
        default: letter
        }
    }
}
