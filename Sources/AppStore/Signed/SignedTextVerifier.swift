import Crypto
import Foundation

/// Verifies signed texts: of notifications, of the Server API and of devices.
///
/// Apple: "JWSTransaction", "JWSDecodedHeader". A chain is verified once and then remembered; each text costs one
/// signature.
package struct SignedTextVerifier: Sendable {
    private let root: SigningRoot
    private let chains = VerifiedChains()

    /// Creates a verifier that trusts one root.
    package init(trusting root: SigningRoot = .apple) { self.root = root }

    /// Verifies a text in compact form; throws ``SignedTextRefusal`` unless this very text was signed under the root.
    ///
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

    /// How many chains are remembered.
    var chainCount: Int { chains.count }

    /// Verifies a chain that was not known when the text came, and remembers it. A header that names no chain is refused
    /// before `admits` is asked.
    private func newChain(
        of text: CompactText, _ admits: () -> Bool
    ) async throws(SignedTextRefusal) -> SignerChain {
        let header = try SignedHeader(text.header)
        let verification = chains.verification(of: text.header, admits: admits) { [root] in
            do throws(SignedTextRefusal) {
                return .success(try await SignerChain(header, trusting: root))
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
        guard let text = try? JSONReader.read(payload), text.nodes[JSONDocument.root].isObject else {
            throw .unreadablePayload
        }
        let members = text.members(JSONDocument.root)
        let stated = members["signedDate"] ?? members["receiptCreationDate"]
        guard let number = stated.flatMap(text.scalar), let date = LenientNumber.integer(number),
            LenientInstant.believable(date) != nil
        else { throw .undated }
        return date
    }
}
