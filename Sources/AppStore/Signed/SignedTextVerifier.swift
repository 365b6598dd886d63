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
        switch chains.place(of: text.header, admits: admits, verify: { await verifiedChain(of: text) }) {
        case .known(let known):
            chain = known
            try Self.requireSignature(of: text, by: known)
        case .underWay(let verification):
            // Only a signed header is remembered, so that others cannot fill the memory.
            defer { chains.endVerification(of: text.header) }
            chain = try await verification.value.get()
            try Self.requireSignature(of: text, by: chain)
            chains.remember(chain, of: text.header)
        case .notAdmitted:
            throw .tooManyChains
        }
        let signedAt = try Self.date(of: text.payload)
        guard chain.validity.contains(signedAt) else { throw .outsideValidity }
        return SignedText(payload: text.payload, signedAt: signedAt, chain: chain)
    }

    /// How many chains are remembered.
    var chainCount: Int { chains.count }

    private func verifiedChain(of text: CompactText) async -> Result<SignerChain, SignedTextRefusal> {
        do throws(SignedTextRefusal) {
            return .success(try await SignerChain(try SignedHeader(text.header), trusting: root))
        } catch {
            return .failure(error)
        }
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
