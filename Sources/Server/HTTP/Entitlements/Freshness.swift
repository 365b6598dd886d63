import Ledger
import Subscriptions
import Tracking

/// The freshness of a lookup: how old Apple's newest answer may become, and whether it is older.
struct Freshness: Sendable, Hashable {
    /// The longest time between two of Apple's answers, in seconds, as far as Apple and the app's rate limit allow. A
    /// lease may add to it. Nil where no answer of Apple is involved, or Apple is not asked any more.
    let ageSecondsMax: Int64?
    /// Whether the answer is older than that and a lease, or a renewal is expected that Apple has not confirmed.
    let isStale: Bool

    /// The freshness without an answer of Apple, such as for a manual grant.
    static let ownWord = Freshness(ageSecondsMax: nil, isStale: false)

    /// Combines several: the shortest bound, and stale when one is stale.
    init(of parts: [Freshness]) {
        ageSecondsMax = parts.compactMap(\.ageSecondsMax).min()
        isStale = parts.contains { $0.isStale }
    }

    /// Computes the freshness at `now` from what is known of a subscription.
    init(of input: FreshnessInput, environment: StoreEnvironment, now: Instant, _ terms: FreshnessTerms) {
        let limit = ageLimit(of: input, environment: environment, policy: terms.policy(for: environment))
        let awaitsRenewal = input.state == .awaitingRenewal && input.reason != .replacement
        let lease = Delay(milliseconds: Int64(terms.leaseSeconds * 1000))
        let isOld = limit.map { input.answeredAt + $0 + lease < now } ?? false
        self.init(ageSecondsMax: limit.map { ($0.milliseconds + 999) / 1000 }, isStale: isOld || awaitsRenewal)
    }

    private init(ageSecondsMax: Int64?, isStale: Bool) {
        self.ageSecondsMax = ageSecondsMax
        self.isStale = isStale
    }
}

/// The terms, beside the subscription, on which the bound on the age of answers depends.
struct FreshnessTerms: Sendable {
    /// The app's policy in production, at most a minute old.
    let production: Policy
    /// The same in the sandbox.
    let sandbox: Policy
    /// How long a worker may lease a receipt, in seconds.
    let leaseSeconds: Double

    func policy(for environment: StoreEnvironment) -> Policy {
        switch environment {
        case .production: production
        case .sandbox: sandbox
        }
    }
}

extension Tracker {
    /// Returns the terms for the age of answers about an app's customers.
    func terms(of app: App) -> FreshnessTerms {
        FreshnessTerms(
            production: app.policy(for: .production),
            sandbox: app.policy(for: .sandbox), leaseSeconds: options.leaseSeconds)
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

    /// Returns Apple's expiry where access continues after it: for the leeway, and then perhaps for the outage
    /// allowance.
    private func expiry(awaitedUntil until: Instant, at time: Instant, _ terms: FreshnessTerms) -> Instant {
        let policy = terms.policy(for: environment)
        let expiry = until - policy.leeway
        return expiry > time ? expiry - policy.outageAllowance : expiry
    }
}

extension OwnedSubscription {
    /// Returns its freshness at `now`.
    func freshness(now: Instant, _ terms: FreshnessTerms) -> Freshness {
        guard let checkedAt, let state = State(rawValue: state) else { return .ownWord }
        return Freshness(
            of: FreshnessInput(
                state: state, reason: reason.flatMap { Reason(rawValue: $0) }, answeredAt: checkedAt,
                expiresAt: expiresAt, accessEndsAt: entitledUntil, isRenewalOff: nextPayment == false),
            environment: environment, now: now, terms)
    }
}
