import AppStore
import Subscriptions
import Tracking

extension SignedExplanation {
    /// The explanation as JSON. Every key is always present, `null` where unknown.
    package var json: JSONValue {
        switch outcome {
        case .failure(let refusal):
            return [
                "verdict": "refused", "reason": .string(refusal.sentence), "signed_at": nil, "chain": nil,
                "claims": nil, "signed": [:],
            ]
        case .success(let signed):
            return [
                "verdict": "verified", "reason": nil,
                "signed_at": .string(Instant(milliseconds: signed.signedAt).iso8601),
                "chain": [
                    "subjects": .array(signed.chain.subjects.map { .string($0) }),
                    "valid_from": .string(Instant(milliseconds: signed.chain.validity.lowerBound).iso8601),
                    "valid_until": .string(Instant(milliseconds: signed.chain.validity.upperBound).iso8601),
                ],
                "claims": .object(Dictionary(claims.map { ($0.path, .string($0.value)) }) { _, last in last }),
                "signed": .object(Dictionary(inner.map { ($0.path, $0.json) }) { _, last in last }),
            ]
        }
    }
}
