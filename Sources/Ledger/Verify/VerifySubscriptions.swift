import Postgres
import SQL
import Subscriptions

/// Returns where a slice of subscriptions violates what follows from their facts and from the schedule's rules.
@Sendable func subscriptionViolations(
    in slice: KeySlice, _ terms: VerifyTerms, apps: [Int32: App], transaction: Transaction
) throws -> [Violation] {
    let rows = try transaction.query(Queries.verifySubscriptions, slice.parameters)
    let loaded = try LoadedSubscriptions(rows, recordedMicroseconds: 0, lockingOwners: false, in: transaction)
    let drafts = Dictionary(loaded.drafts.values.map { ($0.rowID, $0) }) { first, _ in first }
    return try rows.flatMap { row -> [Violation] in
        guard let draft = drafts[try row.int8("subscription_id")], let state = draft.stored,
            let app = apps[draft.key.appID]
        else { return [] }
        let stored = try StoredSubscription(draft, state, app: app, row, terms)
        let found: [(Invariant, String?)] = [
            (.poller, try stored.pollerTrouble(row)), (.nextCheck, stored.nextCheckTrouble),
            (.age, try stored.ageTrouble(row)), (.facts, try stored.factsTrouble(row)),
        ]
        return found.compactMap { invariant, detail in
            detail.map { Violation(invariant, of: draft, in: app.bundleID, $0) }
        }
    }
}

/// A stored subscription and the rules that it must follow.
private struct StoredSubscription {
    private let draft: SubscriptionDraft
    private let state: SubscriptionState
    /// The app's tolerances. Those that delay a plan have the most patient values that an app may have, because the
    /// app's values may have changed since the plan was made.
    private let policy: Policy
    private let now: Instant
    private let checkedAt: Instant
    private let terms: VerifyTerms

    /// The most by which a plan may differ because another receipt polled when it was made: the longest spread of a
    /// check.
    private static let spreadLongest = Delay.minutes(75)

    init(_ draft: SubscriptionDraft, _ state: SubscriptionState, app: App, _ row: Row, _ terms: VerifyTerms) throws {
        self.draft = draft
        self.state = state
        self.terms = terms
        now = try row.instant("now")
        checkedAt = draft.checkedMicroseconds.map { Instant(microseconds: $0) } ?? state.asOf
        var policy = app.accelerated(by: terms.speedup).policy(for: draft.key.environment)
        policy.sweepStretch = SweepFrequency.stretchMax
        policy.preCheckSpread = .zero
        self.policy = policy
    }

    /// Returns the next check by the rules, as of an instant; nil for never.
    private func planned(at instant: Instant) -> Instant? {
        let plan = nextCheck(
            for: [state], environment: draft.key.environment, outcome: .verified, now: instant,
            seed: UInt64(bitPattern: draft.polling.storedPoller?.number ?? 0), policy: policy)
        return switch plan {
        case .at(let next): next
        case .retired: nil
        }
    }

    /// Returns a problem when no receipt polls it although one could.
    func pollerTrouble(_ row: Row) throws -> String? {
        guard draft.polling.storedPoller == nil, let candidate = try row.int8IfPresent("candidate") else { return nil }
        let next = planned(at: now).map { "a check is due by \($0.iso8601)" } ?? "no check is due"
        return "nothing polls it, receipt \(candidate) could, and \(next)"
    }

    /// The problem that the stored plan is later than the rules give both at the last answer and now.
    var nextCheckTrouble: String? {
        guard draft.polling.storedPoller != nil, let before = planned(at: checkedAt), let today = planned(at: now)
        else {
            return nil
        }
        let latest = max(before, today)
        guard let stored = draft.polling.nextCheckAt else {
            return "no check is planned, and one is due by \(latest.iso8601)"
        }
        let tolerance = max(Self.spreadLongest.milliseconds / Int64(terms.speedup), 1_000)
        guard stored > latest + Delay(milliseconds: tolerance) else { return nil }
        return "the next check is planned for \(stored.iso8601), the rules give \(latest.iso8601)"
    }

    /// Returns a problem when the answer is older than lookups promise and its poller waits for a later time although
    /// Apple answers.
    func ageTrouble(_ row: Row) throws -> String? {
        guard try row.bool("sleeps"), let input,
            let limit = ageLimit(of: input, environment: draft.key.environment, policy: policy)
        else { return nil }
        let patience = Delay(milliseconds: Int64((terms.leaseSeconds + terms.toleranceSeconds) * 1_000))
        let end = checkedAt + limit + patience
        guard end < now else { return nil }
        return "the newest answer is of \(checkedAt.iso8601), and another one was promised by \(end.iso8601)"
    }

    private var input: FreshnessInput? {
        guard let span = state.timeline.span(at: max(now, state.asOf)) else { return nil }
        let isInOutageAllowance = state.outageAllowance.applies(at: now, asOf: state.asOf, policy: policy)
        return FreshnessInput(
            state: isInOutageAllowance ? .awaitingRenewal : span.state,
            reason: isInOutageAllowance ? .renewal : span.reason,
            answeredAt: checkedAt, expiresAt: state.expiresAt, accessEndsAt: span.entitledUntil, since: span.from,
            chargedAt: state.headStartsAt, isRenewalOff: state.nextPayment == false)
    }

    /// Returns a difference between the columns and timeline and what follows from the facts. The length of the outage
    /// allowance is not compared, because it may have changed since.
    func factsTrouble(_ row: Row) throws -> String? {
        let held = draft.storedSpans.lazy.compactMap { span in span.allowedUntil.map { $0 - span.from } }.first
        let differences = try FactSnapshot(stored: state, draft.storedSpans, columns: row).differences(
            from: FactSnapshot(rebuilt: state, outageAllowance: held ?? policy.outageAllowance), of: "")
        guard let first = differences.first else { return nil }
        let more = differences.count == 1 ? "" : ", and \(differences.count - 1) more differ"
        return "\(first.fact) is \(first.stored ?? "nothing"), its facts give \(first.rebuilt ?? "nothing")\(more)"
    }
}
