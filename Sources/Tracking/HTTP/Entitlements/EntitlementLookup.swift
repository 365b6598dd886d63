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
    /// What the age of answers depends on.
    let terms: FreshnessTerms
    let entitlements: [Entitlement]

    /// How fresh all of them are together.
    var freshness: Freshness {
        // Knowledge that is yet to come is all there is now.
        let known = min(knownAt ?? now, now)
        return Freshness(of: entitlements.map { $0.freshness(at: time ?? now, now: known, terms) })
    }

    /// The answer, or 304 when the caller has it already.
    func response(ifNoneMatch: [String]) -> Response {
        let told = JSONValue.array(entitlements.map(\.json))
        let tag = entityTag
        // What is kept must be asked about again each time: a purchase has to show at once.
        let headers: HTTPFields = [.eTag: tag.description, .cacheControl: "private, no-cache", .vary: "Authorization"]
        guard !tag.isNamed(in: ifNoneMatch) else { return Response(status: .notModified, headers: headers) }
        return Response(json(telling: told), headers: headers)
    }

    /// The tag of what the answer means. The instants of asking are no part of it, or no two answers were equal; nor are the
    /// clocks of Apple's answers, or every check of Apple's made it another one.
    private var entityTag: EntityTag {
        EntityTag(
            [
                .string(bundleID.text), .string(customer), .optional(time?.iso8601), .optional(knownAt?.iso8601),
                .bool(freshness.isStale),
            ] + entitlements.flatMap(\.meaning))
    }

    private func json(telling told: JSONValue) -> JSONValue {
        [
            "app": .string(bundleID.text),
            "customer": .string(customer),
            "at": .string((time ?? now).iso8601),
            "known_at": .string((knownAt ?? now).iso8601),
            "stale": .bool(freshness.isStale),
            "max_age_s": .optional(freshness.ageSecondsMax),
            "entitlements": told,
        ]
    }
}

extension Entitlement {
    /// What it says but for the clocks of the answers that say so.
    fileprivate var meaning: [JSONValue] {
        [
            .string(name), .bool(granted), .optional(until?.milliseconds), .optional(productID?.text),
            .optional(state), .optional(reason), .string(environment.rawValue), .string(basis),
        ]
    }

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
