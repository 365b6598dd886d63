import HTTPTypes
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
    /// How fresh all entitlements are together.
    let freshness: Freshness
    private let told: ToldEntitlements

    /// An answer with `rights`, asked for at `now`; `terms` are what the age of answers depends on.
    init(
        bundleID: BundleID, customer: String, time: Instant?, knownAt: Instant?, now: Instant, terms: FreshnessTerms,
        rights: Rights
    ) {
        self.bundleID = bundleID
        self.customer = customer
        self.time = time
        self.knownAt = knownAt
        self.now = now
        // Knowledge that is yet to come is all there is now.
        let known = min(knownAt ?? now, now)
        freshness = Freshness(of: rights.entitlements.map { $0.freshness(at: time ?? now, now: known, terms) })
        told = rights.told(by: ToldEntitlements.init)
    }

    /// The answer, or 304 when the caller has it already.
    func answer(ifNoneMatch: [String]) -> WrittenAnswer {
        let tag = entityTag
        // What is kept must be asked about again each time: a purchase has to show at once.
        let headers: HTTPFields = [.eTag: tag.description, .cacheControl: "private, no-cache", .vary: "Authorization"]
        guard !tag.isNamed(in: ifNoneMatch) else { return WrittenAnswer(nil, status: .notModified, headers: headers) }
        return WrittenAnswer(text, headers: headers)
    }

    /// The tag of what the answer means. The instants of asking are no part of it, or no two answers were equal; nor are the
    /// clocks of Apple's answers, or every check of Apple's made it another one.
    private var entityTag: EntityTag {
        told.tag.joined(with: [
            .string(bundleID.text), .string(customer), .optional(time?.iso8601), .optional(knownAt?.iso8601),
            .bool(freshness.isStale),
        ])
    }

    private var text: JSONText {
        JSONText(members: [
            "app": .value(.string(bundleID.text)),
            "at": .value(.string((time ?? now).iso8601)),
            "customer": .value(.string(customer)),
            "entitlements": .written(told.text),
            "known_at": .value(.string((knownAt ?? now).iso8601)),
            "max_age_s": .value(.optional(freshness.ageSecondsMax)),
            "stale": .value(.bool(freshness.isStale)),
        ])
    }

    /// The answer as one of many.
    var entry: JSONText {
        JSONText(members: [
            "customer": .value(.string(customer)),
            "entitlements": .written(told.text),
            "max_age_s": .value(.optional(freshness.ageSecondsMax)),
            "stale": .value(.bool(freshness.isStale)),
        ])
    }
}
