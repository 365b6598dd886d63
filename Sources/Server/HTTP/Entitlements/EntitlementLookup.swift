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
        var tag = EntityTag()
        for entitlement in found.entitlements { tag.add(meaningOf: entitlement) }
        tag.add(bundleID.text)
        tag.add(customer)
        tag.add(time)
        tag.add(knownAt)
        tag.add(freshness.isStale)
        return tag
    }

    private var text: JSONText {
        JSONText {
            $0.member("app", bundleID.text)
            $0.member("at", time ?? found.now)
            writeAnswer(to: &$0, knownAt: knownAt ?? found.now)
        }
    }

    /// Writes the answer as an element of a batch.
    func writeEntry(to text: inout JSONText) { text.object { writeAnswer(to: &$0, knownAt: nil) } }

    private func writeAnswer(to text: inout JSONText, knownAt: Instant?) {
        text.member("customer", customer)
        text.member("entitlements", each: found.entitlements) { $0.write($1) }
        if let knownAt { text.member("known_at", knownAt) }
        text.member("max_age_s", freshness.ageSecondsMax)
        text.member("stale", freshness.isStale)
    }
}

extension EntityTag {
    /// Adds the content of an entitlement without the clocks of Apple's answers.
    fileprivate mutating func add(meaningOf entitlement: Entitlement) {
        add(entitlement.name)
        add(entitlement.granted)
        add(entitlement.until)
        add(entitlement.endedAt)
        add(entitlement.productID?.text)
        add(entitlement.state)
        add(entitlement.reason)
        add(entitlement.environment.rawValue)
        add(entitlement.basis)
    }
}

extension JSONText {
    /// Writes an entitlement as lookups report it.
    mutating func write(_ entitlement: Entitlement) {
        object {
            $0.member("as_of", entitlement.asOf)
            $0.member("basis", entitlement.basis)
            $0.member("checked_at", entitlement.checkedAt)
            $0.member("ended_at", entitlement.endedAt)
            $0.member("entitlement", entitlement.name)
            $0.member("environment", entitlement.environment.rawValue)
            $0.member("granted", entitlement.granted)
            $0.member("product_id", entitlement.productID?.text)
            $0.member("reason", entitlement.reason)
            $0.member("state", entitlement.state)
            $0.member("until", entitlement.until)
        }
    }
}
