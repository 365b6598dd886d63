/// What is kept of signed texts once they are old: every claim, also those that no code reads yet, with all that is nested
/// in it. What must go is listed; certificates and signatures go with the texts that they belong to.
enum KeptClaims {
    /// Claims that go, wherever they are: what verifies a device, numbers used once, certificates, raw receipts, and the
    /// app transaction, which is about a device that no erasure could find.
    private static let dropped: Set<String> = [
        "deviceVerification", "deviceVerificationNonce", "nonce", "x5c", "receipt", "receiptData", "receipt-data",
        "latest_receipt", "latestReceipt", "unified_receipt", "transactionReceipt", "signedAppTransactionInfo",
    ]

    /// Returns the kept claims of a payload, each as it came; nil for anything else than an object.
    ///
    /// - Parameter others: Claims of the outermost object's members that go too, because they are kept elsewhere.
    static func kept(of payload: [UInt8], without others: Set<String> = []) -> [UInt8]? {
        guard let text = try? JSONReader.read(payload), text.nodes[JSONDocument.root].isObject else { return nil }
        var kept: [UInt8] = []
        append(JSONDocument.root, of: text, without: dropped.union(others), to: &kept)
        return kept
    }

    /// Appends a value without the members that go. A signed text within it stays as its claims alone: `~.PAYLOAD.`.
    private static func append(
        _ index: Int, of text: JSONDocument, without names: Set<String>, to kept: inout [UInt8]
    ) {
        let node = text.nodes[index]
        let content = text.bytes[node.content]
        switch node.kind {
        case .null, .number, .boolean: kept += content
        case .escapedString: kept += Self.quoted(content)
        case .string: kept += Self.quoted(ShortText.reduced(content).map { $0[...] } ?? content)
        case .array:
            appendList(text.elements(index), between: ("[", "]"), to: &kept) { element, kept in
                append(element, of: text, without: names, to: &kept)
            }
        case .object:
            let keys = text.keys(index).filter { !names.contains(text.unescaped(text.nodes[$0])) }
            appendList(keys, between: ("{", "}"), to: &kept) { key, kept in
                kept += Self.quoted(text.bytes[text.nodes[key].content]) + [UInt8(ascii: ":")]
                append(key + 1, of: text, without: names, to: &kept)
            }
        }
    }

    private static func appendList(
        _ indices: [Int], between marks: (Unicode.Scalar, Unicode.Scalar), to kept: inout [UInt8],
        each: (Int, inout [UInt8]) -> Void
    ) {
        kept.append(UInt8(ascii: marks.0))
        for (place, index) in indices.enumerated() {
            if place > 0 { kept.append(UInt8(ascii: ",")) }
            each(index, &kept)
        }
        kept.append(UInt8(ascii: marks.1))
    }

    private static func quoted(_ content: ArraySlice<UInt8>) -> [UInt8] {
        [UInt8(ascii: "\"")] + content + [UInt8(ascii: "\"")]
    }
}

extension SignedNotification {
    /// Returns what is kept of a packed notification once it is old, as `init(claims:)` reads it; nil where it cannot be
    /// read.
    package static func keptClaims(ofPacked packed: [UInt8]) -> String? {
        guard let end = packed.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let payload = Array(packed[(end + 1)...])
        let data = PayloadFields(payload)?.object("data")
        var (parts, kept): ([String], Set<String>) = ([], [])
        for (name, claim) in [("transaction", "signedTransactionInfo"), ("renewal", "signedRenewalInfo")] {
            guard let text = data?.text(claim),
                let inner = ShortText.payload(of: Array(text.utf8)).flatMap({ KeptClaims.kept(of: $0) })
            else { continue }
            parts.append("\"\(name)\":" + String(decoding: inner, as: UTF8.self))
            kept.insert(claim)
        }
        guard let outer = KeptClaims.kept(of: payload, without: kept) else { return nil }
        parts.insert(#""notification":"# + String(decoding: outer, as: UTF8.self), at: 0)
        return "{\(parts.joined(separator: ","))}"
    }
}
