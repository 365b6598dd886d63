/// A text that Apple signed: what it says, when, and by which chain.
package struct SignedText: Sendable {
    /// The payload, a JSON object.
    package let payload: [UInt8]
    /// When it was signed, in milliseconds since 1970: `signedDate`, or `receiptCreationDate` of an app transaction.
    package let signedAt: Int64
    /// The chain of the key that signed it.
    package let chain: SignerChain

    /// Returns the signed text in a request's body: `signedPayload` of a JSON object, as in a notification, or the whole
    /// body without surrounding white space.
    package static func inBody(_ body: [UInt8]) -> [UInt8] {
        if let text = try? JSONReader.read(body), text.nodes[JSONDocument.root].isObject {
            let inner = text.members(JSONDocument.root)["signedPayload"].flatMap(text.scalar)
            return Array((inner ?? "").utf8)
        }
        guard let first = body.firstIndex(where: { !$0.isWhiteSpace }),
            let last = body.lastIndex(where: { !$0.isWhiteSpace })
        else { return [] }
        return Array(body[first...last])
    }
}
