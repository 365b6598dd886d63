import HTTPTypes
import Hummingbird
import JSON
import Subscriptions
import Synchronization
import Tracking

/// `GET /v1/apps/{bundle}/customers/{id}/entitlements`: a customer's entitlements at one instant, as known at another.
struct GetEntitlements: Sendable {
    let ledger: SubscriptionLedger
    let apps: KnownApps
    let counters: LookupCounters

    func addRoute(to routes: KeyedRoutes) {
        let customers = ledger.customers
        let lookups = routes.ofApp(needing: .read, query: ["at", "known_at"])
        lookups.get("/v1/apps/{bundle}/customers/{id}/entitlements") { [apps, counters] request, context in
            let customer = try context.parameters.decoded("id")
            try Upload.requireValidCustomerID(customer)
            let (time, knownAt) = (try request.instant("at"), try request.instant("known_at"))
            let terms =
                if let known = apps.known(context.bundleID) { known } else { try await apps.require(context.bundleID) }
            let found = try await customers.entitlements(
                of: CustomerName(AppCustomerID(customer), of: context.bundleID), at: time, knownAt: knownAt)
            counters.count(found.source)
            return EntitlementLookup(
                bundleID: context.bundleID, customer: customer, time: time, knownAt: knownAt, terms: terms, found: found
            ).response(ifNoneMatch: request.headers[values: .ifNoneMatch])
        }
    }
}

/// `POST /v1/apps/{bundle}/entitlements:batch`: the entitlements of many customers, in the order of the request.
struct PostBatch: Sendable {
    static let customersMax = 1000

    let ledger: SubscriptionLedger
    let apps: KnownApps
    let counters: LookupCounters
    let limits: ServerLimits

    private struct Question: KnownFields {
        let customers: [String]
        let at: String?
        let knownAt: String?

        enum CodingKeys: String, CodingKey, CaseIterable {
            case customers, at
            case knownAt = "known_at"
        }
    }

    func addRoute(to routes: KeyedRoutes) {
        routes.ofApp(needing: .read).post("/v1/apps/{bundle}/entitlements:batch") { request, context in
            let question = try await limits.json(Question.self, of: request)
            guard (1...Self.customersMax).contains(question.customers.count) else {
                throw Problem(.invalid, "The body's customers are 1 to \(Self.customersMax) customer ids.")
            }
            for customer in question.customers { try Upload.requireValidCustomerID(customer) }
            let time = try question.at.map { try Instant(asked: $0, as: "The body's at") }
            let knownAt = try question.knownAt.map { try Instant(asked: $0, as: "The body's known_at") }
            let terms = try await apps.require(context.bundleID)
            let found = try await ledger.customers.entitlements(
                of: question.customers.map { CustomerName(AppCustomerID($0), of: context.bundleID) }, at: time,
                knownAt: knownAt)
            for answer in found { counters.count(answer.source) }
            let answers = zip(question.customers, found).map { customer, found in
                EntitlementLookup(
                    bundleID: context.bundleID, customer: customer, time: time, knownAt: knownAt, terms: terms,
                    found: found)
            }
            let now = answers[0].found.now
            return Response(
                JSONText {
                    $0.member("app", context.bundleID.text)
                    $0.member("at", time ?? now)
                    $0.member("customers", each: answers) { $1.writeEntry(to: &$0) }
                    $0.member("known_at", knownAt ?? now)
                })
        }
    }
}

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
        freshness = Freshness(of: found.entitlements.map { $0.freshness(at: time ?? found.now, now: known, terms) })
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

/// The freshness of a lookup: how old Apple's newest answer may become, and whether it is older.
struct Freshness: Sendable, Hashable {
    /// The longest time between two of Apple's answers, in seconds, as far as Apple and the app's rate allow; a lease may
    /// add to it. Nil where no answer of Apple is involved, or Apple is not asked any more.
    let ageSecondsMax: Int64?
    /// Whether the answer is older than that and a lease, or a renewal is expected that Apple has not confirmed.
    let isStale: Bool

    /// The freshness without an answer of Apple, such as for a manual grant.
    static let ownWord = Freshness(ageSecondsMax: nil, isStale: false)
}

extension Freshness {
    /// Combines several: the shortest bound, and stale when one is stale.
    init(of parts: [Freshness]) {
        self.init(ageSecondsMax: parts.compactMap(\.ageSecondsMax).min(), isStale: parts.contains { $0.isStale })
    }

    /// Computes the freshness at `now` from what is known of a subscription.
    init(of input: FreshnessInput, environment: StoreEnvironment, now: Instant, _ terms: FreshnessTerms) {
        let limit = ageLimit(of: input, environment: environment, policy: terms.policy(for: environment))
        let awaitsRenewal = input.state == .awaitingRenewal && input.reason != .replacement
        let lease = Delay(milliseconds: Int64(terms.leaseSeconds * 1000))
        let isOld = limit.map { input.answeredAt + $0 + lease < now } ?? false
        self.init(ageSecondsMax: limit.map { ($0.milliseconds + 999) / 1000 }, isStale: isOld || awaitsRenewal)
    }
}

/// The terms, beside the subscription, on which the bound on the age of answers depends.
struct FreshnessTerms: Sendable {
    /// The app's policies, at most a few seconds old.
    let production, sandbox: Policy
    /// How long a worker may lease a receipt, in seconds.
    let leaseSeconds: Double

    func policy(for environment: StoreEnvironment) -> Policy {
        switch environment {
        case .production: production
        case .sandbox: sandbox
        }
    }
}

extension Entitlement {
    /// Returns its freshness at `now` for a lookup about `time`.
    func freshness(at time: Instant, now: Instant, _ terms: FreshnessTerms) -> Freshness {
        guard basis == "verified", let checkedAt, let state = state.flatMap({ State(rawValue: $0) }) else {
            return .ownWord
        }
        var input = FreshnessInput(state: state, reason: reason.flatMap { Reason(rawValue: $0) }, answeredAt: checkedAt)
        input.expiresAt = expiresAt
        input.accessEndsAt = until
        switch state {
        case .active: input.expiresAt = until
        case .awaitingRenewal: input.expiresAt = until.map { expiry(awaitedUntil: $0, at: time, terms) }
        case .gracePeriod, .billingRetry, .expired, .revoked: break
        }
        // A one-time purchase does not expire. Whether it is still checked for refunds is not known here.
        if input.expiresAt == nil, state != .gracePeriod { return .ownWord }
        return Freshness(of: input, environment: environment, now: now, terms)
    }

    /// Returns Apple's expiry, after which access goes on for the leeway and then perhaps for the outage allowance.
    private func expiry(awaitedUntil until: Instant, at time: Instant, _ terms: FreshnessTerms) -> Instant {
        let policy = terms.policy(for: environment)
        let expiry = until - policy.leeway
        return expiry > time ? expiry - policy.outageAllowance : expiry
    }
}

extension OwnedSubscription {
    func freshness(now: Instant, _ terms: FreshnessTerms) -> Freshness {
        guard let checkedAt, let state = State(rawValue: state) else { return .ownWord }
        return Freshness(
            of: FreshnessInput(
                state: state, reason: reason.flatMap { Reason(rawValue: $0) }, answeredAt: checkedAt,
                expiresAt: expiresAt, accessEndsAt: entitledUntil, isRenewalOff: nextPayment == false),
            environment: environment, now: now, terms)
    }
}

/// A weak entity tag (RFC 9110, section 8.8), equal for two answers of the same meaning. Its fingerprint, FNV-1a with
/// 64 bits, detects changes but no forgery.
struct EntityTag: Sendable, Hashable, CustomStringConvertible {
    private var fingerprint: UInt64 = 0xCBF2_9CE4_8422_2325

    /// Adds text; nil differs from every text.
    mutating func add(_ text: String?) {
        if let text { for byte in text.utf8 { add(byte) } } else { add(Self.absence) }
        add(Self.end)
    }

    mutating func add(_ flag: Bool) { add(flag ? UInt8(1) : 0) }

    mutating func add(_ instant: Instant?) {
        guard let instant else { return add(Self.absence) }
        withUnsafeBytes(of: instant.milliseconds.littleEndian) { for byte in $0 { add(byte) } }
        add(Self.end)
    }

    /// Bytes that no UTF-8 has.
    private static let (absence, end) = (UInt8(0xFE), UInt8(0xFF))

    private mutating func add(_ byte: UInt8) { fingerprint = (fingerprint ^ UInt64(byte)) &* 0x100_0000_01B3 }

    /// The tag in the syntax of the header.
    var description: String {
        let digits = String(fingerprint, radix: 16)
        return "W/\"\(String(repeating: "0", count: 16 - digits.count))\(digits)\""
    }

    /// Returns whether an `If-None-Match` names it, by the weak comparison of RFC 9110, section 13.1.2.
    func isNamed(in fields: [String]) -> Bool {
        guard !fields.isEmpty else { return false }
        let opaque = description.dropFirst(2)
        return fields.flatMap { $0.split(separator: ",") }.contains { candidate in
            let text = candidate.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }
            return text == "*" || (text.hasPrefix("W/") ? text.dropFirst(2) : text) == opaque
        }
    }
}

/// A cache of the apps with the terms of their answers, so that not every lookup queries them. Only apps that exist are
/// cached, so a new app is known at once. A removed app and a changed setting show after `secondsMax` at most: one query
/// renews all apps, so that it costs little.
final class KnownApps: Sendable {
    private static let secondsMax = 5
    private static let entriesMax = 10_000

    private let tracker: Tracker
    private let known = Mutex(TTLCache<BundleID, FreshnessTerms>(entriesMax: entriesMax, seconds: secondsMax))

    init(_ tracker: Tracker) { self.tracker = tracker }

    func known(_ bundleID: BundleID) -> FreshnessTerms? {
        let now = ContinuousClock.now
        return known.withLock { $0.value(for: bundleID, at: now) }
    }

    /// Returns the terms of the app. Throws a problem unless it is registered.
    @discardableResult
    func require(_ bundleID: BundleID) async throws -> FreshnessTerms {
        if let terms = known(bundleID) { return terms }
        let asked = ContinuousClock.now
        let apps = try await tracker.ledger.apps.registered(forLookupOf: bundleID)
        guard let app = apps.first(where: { $0.bundleID == bundleID }) else {
            throw Problem.unknownApp(bundleID)
        }
        known.withLock { known in
            for app in apps.count <= Self.entriesMax ? apps : [app] {
                known.keep(terms(of: app), for: app.bundleID, at: asked)
            }
        }
        return terms(of: app)
    }

    private func terms(of app: App) -> FreshnessTerms {
        FreshnessTerms(
            production: app.policy(for: .production), sandbox: app.policy(for: .sandbox),
            leaseSeconds: tracker.options.leaseSeconds)
    }
}
