import Subscriptions

/// A suspected shrink of an expiry as stored in a `jsonb` column.
struct SuspectedShrinkJSON: Codable {
    var expiresAtMilliseconds: Int64
    var asOfMilliseconds: Int64

    init(_ suspicion: SuspectedShrink) {
        expiresAtMilliseconds = suspicion.expiresAt.milliseconds
        asOfMilliseconds = suspicion.asOf.milliseconds
    }

    var suspicion: SuspectedShrink {
        SuspectedShrink(
            expiresAt: Instant(milliseconds: expiresAtMilliseconds), asOf: Instant(milliseconds: asOfMilliseconds))
    }

    enum CodingKeys: String, CodingKey {
        case expiresAtMilliseconds = "expires_at_ms"
        case asOfMilliseconds = "as_of_ms"
    }
}
