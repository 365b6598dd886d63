import JSON

/// What is kept of signed texts once they are old: every claim, also those that no code reads yet, with all that is nested
/// in it. What must go is listed; certificates and signatures go with the texts that they belong to.
enum KeptClaims {
    /// Claims that go, wherever they are: what verifies a device, numbers used once, certificates, raw receipts, and the
    /// app transaction, which is about a device that no erasure could find.
    private static let dropped: Set<String> = [
        "deviceVerification", "deviceVerificationNonce", "nonce", "x5c", "receipt", "receiptData", "receipt-data",
        "latest_receipt", "latestReceipt", "unified_receipt", "transactionReceipt", "signedAppTransactionInfo",
    ]

    /// Returns the kept claims of an object as they came, without `others` that are kept elsewhere; nil for other text.
    static func kept(of payload: [UInt8], without others: Set<String> = []) -> [UInt8]? {
        guard let text = JSONDocument(object: payload) else { return nil }
        var kept = JSONText()
        write(JSONDocument.root, of: text, without: dropped.union(others), to: &kept)
        return kept.bytes
    }

    /// Writes a value without the members that go. A signed text within it stays as its claims alone: `~.PAYLOAD.`.
    private static func write(_ index: Int, of text: JSONDocument, without names: Set<String>, to kept: inout JSONText)
    {
        let node = text.nodes[index]
        let content = text.bytes[node.content]
        switch node.kind {
        case .null, .number, .boolean: kept.write(json: content)
        case .escapedString: kept.write(escaped: content)
        case .string: kept.write(escaped: ShortText.reduced(content).map { $0[...] } ?? content)
        case .array: kept.list(text.elements(index)) { write($1, of: text, without: names, to: &$0) }
        case .object:
            let keys = text.keys(index).filter { !names.contains(text.unescaped(text.nodes[$0])) }
            kept.object(keys) { kept, key in
                kept.write(escaped: text.bytes[text.nodes[key].content])
            } value: { kept, key in
                write(key + 1, of: text, without: names, to: &kept)
            }
        }
    }
}

extension SignedNotification {
    /// Returns what is kept of a packed notification once it is old, as `init(claims:)` reads it; nil if that fails.
    package static func keptClaims(ofPacked packed: [UInt8]) -> String? {
        guard let payloads = PackedNotification.payloads(of: packed) else { return nil }
        let transaction = payloads.transaction.flatMap { KeptClaims.kept(of: $0) }
        let renewal = payloads.renewal.flatMap { KeptClaims.kept(of: $0) }
        var elsewhere: Set<String> = []
        if transaction != nil { elsewhere.insert("signedTransactionInfo") }
        if renewal != nil { elsewhere.insert("signedRenewalInfo") }
        guard let outer = KeptClaims.kept(of: payloads.outer, without: elsewhere) else { return nil }
        let kept = JSONText {
            $0.member("notification", json: outer)
            if let transaction { $0.member("transaction", json: transaction) }
            if let renewal { $0.member("renewal", json: renewal) }
        }
        return String(decoding: kept.bytes, as: UTF8.self)
    }
}

/// One value of a signed payload.
package struct SignedClaim: Sendable, Hashable {
    /// Its place, such as `data.environment` or `summary.storefrontCountryCodes[0]`.
    package let path: String
    /// Its value as text.
    package let value: String
    /// Whether the value is a signed text itself.
    package let isSigned: Bool
}

extension SignedText {
    /// All values of the payload in their order; null and empty ones are left out.
    package var claims: [SignedClaim] {
        guard let text = try? JSONDocument(payload) else { return [] }
        var claims: [SignedClaim] = []
        text.visit(JSONDocument.root, at: "") { path, value in
            claims.append(SignedClaim(path: path, value: value, isSigned: (try? CompactText(Array(value.utf8))) != nil))
        }
        return claims
    }
}

extension JSONDocument {
    /// Calls `body` with the path and text of every scalar within the value at `index`.
    fileprivate func visit(_ index: Int, at path: String, _ body: (String, String) -> Void) {
        switch nodes[index].kind {
        case .object:
            for key in keys(index) {
                let name = unescaped(nodes[key])
                visit(key + 1, at: path.isEmpty ? name : "\(path).\(name)", body)
            }
        case .array:
            for (place, element) in elements(index).enumerated() { visit(element, at: "\(path)[\(place)]", body) }
        case .null: break
        case .boolean, .number, .string, .escapedString:
            if let value = scalar(index) { body(path, value) }
        }
    }
}
