package import AppStore
import Subscriptions

/// What a signed text says, whether Apple signed it, and by which chain: no database, no network.
package struct SignedExplanation: Sendable {
    /// How deep signed texts are looked for in signed texts: a notification holds a transaction.
    private static let depthMax = 2

    /// The place of the text within the outer one; empty for the outer one.
    package let path: String
    /// The verified text, or why it does not count as signed by Apple.
    package let outcome: Result<SignedText, SignedTextRefusal>
    /// The values of the payload that are no signed texts.
    package let claims: [SignedClaim]
    /// The signed texts within it.
    package let inner: [SignedExplanation]

    /// Explains the signed text in `body`: a text in compact form, or the body of a notification.
    package init(body: [UInt8], by verifier: SignedTextVerifier) async {
        await self.init(text: SignedText.inBody(body), at: "", depth: 0, by: verifier)
    }

    private init(text: [UInt8], at path: String, depth: Int, by verifier: SignedTextVerifier) async {
        self.path = path
        do {
            let signed = try await verifier.verify(text)
            outcome = .success(signed)
            let all = signed.claims
            claims = all.filter { !$0.isSigned }
            var inner: [SignedExplanation] = []
            for claim in all where claim.isSigned && depth < Self.depthMax {
                let place = path.isEmpty ? claim.path : "\(path).\(claim.path)"
                inner.append(
                    await SignedExplanation(
                        text: Array(claim.value.utf8), at: place, depth: depth + 1, by: verifier))
            }
            self.inner = inner
        } catch {
            outcome = .failure(error)
            (claims, inner) = ([], [])
        }
    }

    /// The explanation in lines, for a human reader.
    package var text: String { lines.map(\.visible).joined(separator: "\n") }

    private var lines: [String] {
        let name = path.isEmpty ? "" : "\(path): "
        switch outcome {
        case .failure(let refusal): return ["\(name)refused: \(refusal.sentence)"]
        case .success(let signed):
            let (from, until) = (signed.chain.validity.lowerBound, signed.chain.validity.upperBound)
            let chain = signed.chain.subjects.enumerated().map { "  \($0 == 0 ? "signed by" : "issued by") \($1)" }
            return ["\(name)verified, signed \(Instant(milliseconds: signed.signedAt).iso8601)"] + chain
                + ["  valid \(Instant(milliseconds: from).iso8601) to \(Instant(milliseconds: until).iso8601)"]
                + claims.map { "  \($0.path) = \($0.value)" } + inner.flatMap(\.lines)
        }
    }
}
