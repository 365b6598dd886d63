import HTTPTypes
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
    /// The time of the request, which replaces an absent instant.
    let now: Instant
    /// The freshness of all entitlements together.
    let freshness: Freshness
    private let rendered: RenderedEntitlements

    /// Creates an answer with the entitlements `rights`, requested at `now`. The age of answers depends on `terms`.
    init(
        bundleID: BundleID, customer: String, time: Instant?, knownAt: Instant?, now: Instant, terms: FreshnessTerms,
        rights: Rights
    ) {
        self.bundleID = bundleID
        self.customer = customer
        self.time = time
        self.knownAt = knownAt
        self.now = now
        // A `knownAt` in the future means everything known now.
        let known = min(knownAt ?? now, now)
        freshness = Freshness(of: rights.entitlements.map { $0.freshness(at: time ?? now, now: known, terms) })
        rendered = rights.rendered(by: RenderedEntitlements.init)
    }

    /// Returns the answer, or 304 when the caller has it already.
    func answer(ifNoneMatch: [String]) -> WrittenAnswer {
        let tag = entityTag
        // A client must revalidate a stored response each time, because a purchase has to show at once.
        let headers: HTTPFields = [.eTag: tag.description, .cacheControl: "private, no-cache", .vary: "Authorization"]
        guard !tag.isNamed(in: ifNoneMatch) else { return WrittenAnswer(nil, status: .notModified, headers: headers) }
        return WrittenAnswer(text, headers: headers)
    }

    /// The tag of the answer's meaning. It leaves out the time of the request, which would make every answer different,
    /// and the clocks of Apple's answers, which would change it with every check.
    private var entityTag: EntityTag {
        rendered.tag.joined(with: [
            .string(bundleID.text), .string(customer), .optional(time?.iso8601), .optional(knownAt?.iso8601),
            .bool(freshness.isStale),
        ])
    }

    private var text: JSONText {
        JSONText(members: [
            "app": .value(.string(bundleID.text)),
            "at": .value(.string((time ?? now).iso8601)),
            "customer": .value(.string(customer)),
            "entitlements": .written(rendered.text),
            "known_at": .value(.string((knownAt ?? now).iso8601)),
            "max_age_s": .value(.optional(freshness.ageSecondsMax)),
            "stale": .value(.bool(freshness.isStale)),
        ])
    }

    /// The answer as an element of a batch.
    var entry: JSONText {
        JSONText(members: [
            "customer": .value(.string(customer)),
            "entitlements": .written(rendered.text),
            "max_age_s": .value(.optional(freshness.ageSecondsMax)),
            "stale": .value(.bool(freshness.isStale)),
        ])
    }
}

/// Entitlements written for responses: the part that does not depend on the time of the request.
struct RenderedEntitlements: Sendable {
    /// The list as JSON.
    let text: JSONText
    /// The tag of the list's meaning.
    let tag: EntityTag

    /// Writes some entitlements.
    init(_ entitlements: [Entitlement]) {
        text = JSONText(.array(entitlements.map(\.json)))
        tag = EntityTag(entitlements.flatMap(\.meaning))
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
