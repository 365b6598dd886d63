import Hummingbird
import Ledger
import Subscriptions

/// One answer to "what may this customer use?", with how fresh it is.
struct EntitlementLookup: Sendable {
    let bundleID: BundleID
    let customer: String
    /// The instant asked for; nil is now.
    let time: Instant?
    /// The knowledge asked for; nil is all.
    let knownAt: Instant?
    /// When it was asked, for what the caller left open.
    let now: Instant
    /// How many times faster than life the store runs; 1 in production.
    let speedup: Int
    let entitlements: [Entitlement]

    private static let ageSecondsMax: Int64 = 60

    /// Whether something is granted on the expectation of a renewal that Apple has not confirmed.
    var isStale: Bool { entitlements.contains { $0.state == State.awaitingRenewal.rawValue } }

    /// How long a caller may use the answer without asking again: never past the next end.
    var ageSecondsMax: Int64 {
        let at = time ?? now
        let ends = entitlements.compactMap(\.until).filter { $0 > at }
        let bound = max(1, Self.ageSecondsMax / Int64(max(1, speedup)))
        return ends.min().map { min(bound, ($0 - at).milliseconds / 1000) } ?? bound
    }

    /// The answer, or 304 when the caller has it already.
    func response(ifNoneMatch: [String]) -> Response {
        let told = JSONValue.array(entitlements.map(\.json))
        let tag = entityTag(of: told)
        // What is kept must be asked about again each time: a purchase has to show at once.
        let headers: HTTPFields = [.eTag: tag.description, .cacheControl: "private, no-cache", .vary: "Authorization"]
        guard !tag.isNamed(in: ifNoneMatch) else { return Response(status: .notModified, headers: headers) }
        return Response(json(telling: told), headers: headers)
    }

    /// The tag of what the answer says; the instants of asking are no part of it, or no two answers were equal.
    private func entityTag(of told: JSONValue) -> EntityTag {
        EntityTag([
            .string(bundleID.text), .string(customer), .optional(time?.iso8601), .optional(knownAt?.iso8601), told,
        ])
    }

    private func json(telling told: JSONValue) -> JSONValue {
        [
            "app": .string(bundleID.text),
            "customer": .string(customer),
            "at": .string((time ?? now).iso8601),
            "known_at": .string((knownAt ?? now).iso8601),
            "stale": .bool(isStale),
            "max_age_s": .integer(ageSecondsMax),
            "entitlements": told,
        ]
    }
}

extension Entitlement {
    /// The entitlement as lookups tell it.
    var json: JSONValue {
        [
            "entitlement": .string(name),
            "granted": .bool(granted),
            "until": .optional(until?.iso8601),
            "product_id": .optional(productID?.text),
            "state": .optional(state),
            "reason": .optional(reason),
            "environment": .string(environment.rawValue),
            "basis": .string(basis),
            "as_of": .optional(asOf?.iso8601),
            "checked_at": .optional(checkedAt?.iso8601),
        ]
    }
}
