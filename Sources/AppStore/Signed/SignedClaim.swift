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
        guard let text = try? JSONReader.read(payload) else { return [] }
        var claims: [SignedClaim] = []
        text.visit(JSONDocument.root, at: "") { path, value in
            claims.append(
                SignedClaim(path: path, value: value, isSigned: (try? CompactText(Array(value.utf8))) != nil))
        }
        return claims
    }
}

extension JSONDocument {
    /// Calls `body` with the path and text of every scalar within the value at `index`.
    fileprivate func visit(_ index: Int, at path: String, _ body: (String, String) -> Void) {
        switch nodes[index].kind {
        case .object:
            var key = index + 1
            while key < nodes[index].next {
                let name = unescaped(nodes[key])
                visit(key + 1, at: path.isEmpty ? name : "\(path).\(name)", body)
                key = Int(nodes[key + 1].next)
            }
        case .array:
            for (place, element) in elements(index).enumerated() { visit(element, at: "\(path)[\(place)]", body) }
        case .null: break
        case .boolean, .number, .string, .escapedString:
            if let value = scalar(index) { body(path, value) }
        }
    }
}
