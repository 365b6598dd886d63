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
