import Crypto
import SwiftASN1
import X509

/// The form in which a signing authority is kept, so that a restarted store signs with the same key.
extension SigningAuthority {
    /// An error for a text that is no stored authority.
    package struct Unreadable: Error, Sendable, CustomStringConvertible {
        /// The reason in one sentence.
        package let description: String
    }

    /// The key of the signer and the three certificates, the signer's first, in PEM form.
    package var stored: String {
        let chain = certificates.map { PEMDocument(type: "CERTIFICATE", derBytes: $0).pemString }
        return keyPEM + chain.joined(separator: "\n") + "\n"
    }

    /// Reads what ``stored`` returned; throws ``Unreadable`` for any other text.
    package init(stored text: String) throws {
        let blocks: [PEMDocument]
        do {
            blocks = try PEMDocument.parseMultiple(pemString: text)
        } catch {
            throw Unreadable(description: "it is not in PEM form.")
        }
        let chain = blocks.filter { $0.discriminator == "CERTIFICATE" }
        guard chain.count == 3, let block = blocks.first(where: { $0.discriminator == "PRIVATE KEY" }) else {
            throw Unreadable(description: "it does not hold one private key and three certificates.")
        }
        let key = try P256.Signing.PrivateKey(pemRepresentation: block.pemString)
        let certificates = try chain.map { try Certificate(derEncoded: $0.derBytes) }
        guard P256.Signing.PublicKey(certificates[0].publicKey)?.rawRepresentation == key.publicKey.rawRepresentation
        else {
            throw Unreadable(description: "its key is not that of the first certificate.")
        }
        try self.init(certificates, key: key)
    }
}
