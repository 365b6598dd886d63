import Ledger
import Subscriptions

/// How fresh what a lookup tells is: how old Apple's newest answer about it may get, and whether it got older.
struct Freshness: Sendable, Hashable {
    /// Seconds between two answers of Apple's at most, while Apple and the app's rate allow, a lease comes on top; nil
    /// where no answer stands behind it or none is asked for any more.
    let ageSecondsMax: Int64?
    /// Whether the answer is older than that, or a renewal is expected that Apple has not confirmed.
    let isStale: Bool

    /// Nothing of Apple's, such as a right given by hand.
    static let ownWord = Freshness(ageSecondsMax: nil, isStale: false)

    /// Of several things told together: the shortest bound, and stale when one is.
    init(of parts: [Freshness]) {
        ageSecondsMax = parts.compactMap(\.ageSecondsMax).min()
        isStale = parts.contains { $0.isStale }
    }

    /// Of what is known of a subscription at `now`.
    init(of glance: Glance, environment: StoreEnvironment, now: Instant, _ terms: FreshnessTerms) {
        let limit = ageLimit(of: glance, environment: environment, policy: terms.policy(for: environment))
        let awaitsRenewal = glance.state == .awaitingRenewal && glance.reason != .replacement
        let lease = Delay(milliseconds: Int64(terms.leaseSeconds * 1000))
        let isOld = limit.map { glance.answeredAt + $0 + lease < now } ?? false
        self.init(ageSecondsMax: limit.map { ($0.milliseconds + 999) / 1000 }, isStale: isOld || awaitsRenewal)
    }

    private init(ageSecondsMax: Int64?, isStale: Bool) {
        self.ageSecondsMax = ageSecondsMax
        self.isStale = isStale
    }
}

/// What a bound on the age of answers depends on beside the subscription.
struct FreshnessTerms: Sendable {
    /// The app's tolerances, as of a minute ago at most.
    let production: Policy
    /// The same in the sandbox.
    let sandbox: Policy
    /// How long a receipt may be one worker's.
    let leaseSeconds: Double

    func policy(for environment: StoreEnvironment) -> Policy {
        switch environment {
        case .production: production
        case .sandbox: sandbox
        }
    }
}

extension Tracker {
    /// What the age of answers about an app's customers depends on.
    func terms(of app: App) -> FreshnessTerms {
        FreshnessTerms(
            production: app.policy(for: .production, speedup: options.speedup),
            sandbox: app.policy(for: .sandbox, speedup: options.speedup), leaseSeconds: options.leaseSeconds)
    }
}

extension Entitlement {
    /// How fresh it is at `now`, when it was asked for as of `time`.
    func freshness(at time: Instant, now: Instant, _ terms: FreshnessTerms) -> Freshness {
        guard basis == "verified", let checkedAt, let state = state.flatMap({ State(rawValue: $0) }) else {
            return .ownWord
        }
        var glance = Glance(state: state, reason: reason.flatMap { Reason(rawValue: $0) }, answeredAt: checkedAt)
        glance.expiresAt = expiresAt
        glance.accessEndsAt = until
        switch state {
        case .active: glance.expiresAt = until
        case .awaitingRenewal: glance.expiresAt = until.map { expiry(awaitedUntil: $0, at: time, terms) }
        case .gracePeriod, .billingRetry, .expired, .revoked: break
        }
        // A one-time purchase does not expire; whether it is still swept for refunds is not known here.
        if glance.expiresAt == nil, state != .gracePeriod { return .ownWord }
        return Freshness(of: glance, environment: environment, now: now, terms)
    }

    /// Apple's expiry where access goes on after it: for the leeway, or, held, for the outage allowance after that.
    private func expiry(awaitedUntil until: Instant, at time: Instant, _ terms: FreshnessTerms) -> Instant {
        let policy = terms.policy(for: environment)
        let expiry = until - policy.leeway
        return expiry > time ? expiry - policy.outageAllowance : expiry
    }
}

extension OwnedSubscription {
    /// How fresh what is told of it is at `now`.
    func freshness(now: Instant, _ terms: FreshnessTerms) -> Freshness {
        guard let checkedAt, let state = State(rawValue: state) else { return .ownWord }
        return Freshness(
            of: Glance(
                state: state, reason: reason.flatMap { Reason(rawValue: $0) }, answeredAt: checkedAt,
                expiresAt: expiresAt, accessEndsAt: entitledUntil, isRenewalOff: willRenew == false),
            environment: environment, now: now, terms)
    }
}
