/// The header of a signed text: the algorithm, and the chain of the key that signed.
struct SignedHeader: Sendable {
    private static let algorithm = "ES256"
    private static let certificateCount = 3

    /// The certificates in DER form: the signer's, its issuer's and the root's.
    let certificates: [[UInt8]]

    /// Reads an encoded header; throws ``SignedTextRefusal`` unless it is ES256 with three certificates.
    init(_ encoded: ArraySlice<UInt8>) throws(SignedTextRefusal) {
        guard let bytes = Base64URL.decoded(encoded), let text = try? JSONReader.read(bytes),
            text.nodes[JSONDocument.root].isObject
        else { throw .unreadableHeader }
        let members = text.members(JSONDocument.root)
        guard members["crit"] == nil, let algorithm = members["alg"].flatMap(text.scalar),
            let chain = members["x5c"], text.nodes[chain].isArray
        else { throw .unreadableHeader }
        guard algorithm == Self.algorithm else { throw .otherAlgorithm }
        let elements = text.elements(chain)
        guard elements.count == Self.certificateCount else { throw .otherCertificateCount(elements.count) }
        var certificates: [[UInt8]] = []
        for element in elements {
            guard let base64 = text.scalar(element),
                let bytes = Array(base64.utf8).withUnsafeBufferPointer(StandardBase64.decoded)
            else { throw .unreadableCertificate }
            certificates.append(bytes)
        }
        self.certificates = certificates
    }
}

extension JSONDocument {
    /// Returns the values of the object at `index` by their keys; of equal keys the last counts.
    func members(_ index: Int) -> [String: Int] {
        Dictionary(keys(index).map { (unescaped(nodes[$0]), $0 + 1) }) { $1 }
    }

    /// Returns the keys of the object at `index`, each before its value; empty for anything else.
    func keys(_ index: Int) -> [Int] {
        var keys: [Int] = []
        guard nodes[index].isObject else { return keys }
        var key = index + 1
        while key < nodes[index].next {
            keys.append(key)
            key = Int(nodes[key + 1].next)
        }
        return keys
    }
}
