import HTTPTypes
import Hummingbird
import Ledger
import Subscriptions

/// One answer to "what may this customer use?", with its freshness.
struct EntitlementLookup: Sendable {
    let bundleID: BundleID
    let customer: String
    /// The instant asked about; nil is now.
    let time: Instant?
    /// The instant whose knowledge counts; nil is all knowledge.
    let knownAt: Instant?
    /// The entitlements, with the database's clock, which replaces an absent instant.
    let found: CustomerEntitlements
    /// The freshness of all entitlements together.
    let freshness: Freshness

    /// Creates an answer from what was found. The age of answers depends on `terms`.
    init(
        bundleID: BundleID, customer: String, time: Instant?, knownAt: Instant?, terms: FreshnessTerms,
        found: CustomerEntitlements
    ) {
        self.bundleID = bundleID
        self.customer = customer
        self.time = time
        self.knownAt = knownAt
        self.found = found
        // A `knownAt` in the future means everything known now.
        let known = min(knownAt ?? found.now, found.now)
        freshness = Freshness(
            of: found.entitlements.map { $0.freshness(at: time ?? found.now, now: known, terms) })
    }

    /// Returns the answer, or 304 when the caller has it already.
    func response(ifNoneMatch: [String]) -> Response {
        let tag = entityTag
        // A client must revalidate a stored response each time, because a purchase has to show at once.
        let headers: HTTPFields = [.eTag: tag.description, .cacheControl: "private, no-cache", .vary: "Authorization"]
        guard !tag.isNamed(in: ifNoneMatch) else { return Response(status: .notModified, headers: headers) }
        return Response(text, headers: headers)
    }

    /// The tag of the answer's meaning. It leaves out the time of the request, which would make every answer different,
    /// and the clocks of Apple's answers, which would change it with every check.
    private var entityTag: EntityTag {
        EntityTag(
            found.entitlements.flatMap(\.meaning) + [
                .string(bundleID.text), .string(customer), .optional(time?.iso8601), .optional(knownAt?.iso8601),
                .bool(freshness.isStale),
            ])
    }

    private var text: JSONText {
        JSONText(members: [
            "app": .value(.string(bundleID.text)),
            "at": .value(.string((time ?? found.now).iso8601)),
            "customer": .value(.string(customer)),
            "entitlements": .value(.array(found.entitlements.map(\.json))),
            "known_at": .value(.string((knownAt ?? found.now).iso8601)),
            "max_age_s": .value(.optional(freshness.ageSecondsMax)),
            "stale": .value(.bool(freshness.isStale)),
        ])
    }

    /// The answer as an element of a batch.
    var entry: JSONText {
        JSONText(members: [
            "customer": .value(.string(customer)),
            "entitlements": .value(.array(found.entitlements.map(\.json))),
            "max_age_s": .value(.optional(freshness.ageSecondsMax)),
            "stale": .value(.bool(freshness.isStale)),
        ])
    }
}

extension Entitlement {
    /// Its content without the clocks of Apple's answers.
    fileprivate var meaning: [JSONValue] {
        [
            .string(name), .bool(granted), .optional(until?.milliseconds), .optional(productID?.text),
            .optional(state), .optional(reason), .string(environment.rawValue), .string(basis),
        ]
    }

    /// The entitlement as lookups report it.
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
