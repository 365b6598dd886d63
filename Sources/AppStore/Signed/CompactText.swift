/// A signed text in the compact form (RFC 7515, section 7.1), taken apart and not verified.
package struct CompactText: Sendable {
    /// The longest text. A page of Apple's has texts of some 5,400 bytes.
    static let bytesMax = 256 << 10
    /// The longest header. Apple's has some 4,400 bytes.
    static let headerBytesMax = 16 << 10
    /// The bytes of a raw ES256 signature, r and s.
    private static let signatureBytes = 64

    /// The header as it was sent. Texts with equal headers have one chain.
    package let header: ArraySlice<UInt8>
    /// Header and payload as they were sent: what is signed.
    package let signed: ArraySlice<UInt8>
    /// The decoded payload.
    package let payload: [UInt8]
    /// r and s.
    package let signature: [UInt8]

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
