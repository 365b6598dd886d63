import Postgres
import Subscriptions

/// The input of a stored subscription at the clock of Apple's last answer.
struct PolledScheduleInput: Sendable {
    let subscriptionID: Int64
    let asOf: Instant
    let input: ScheduleInput

    init(row: Row) throws {
        subscriptionID = try row.int8("subscription_id")
        asOf = try row.instant("as_of")
        let state: State = try row.word("state")
        input = ScheduleInput(
            state: state, reason: try row.wordIfPresent("reason"), since: try row.instant("since"),
            until: try row.instantIfPresent("until"),
            accessEndsAt: state.isEntitled ? try row.instantIfPresent("access_ends_at") : nil,
            expiresAt: try row.instant("expires_at"), headStartsAt: try row.instant("head_starts_at"),
            renewalExpected: try row.bool("renewal_expected"),
            isRenewalOff: try row.boolIfPresent("will_renew") == false)
    }

    /// Returns whether time alone changes nothing up to the answer's clock and up to now.
    func lasts(until answer: Instant, now: Instant) -> Bool {
        guard answer >= asOf else { return false }
        return input.until.map { answer < $0 && now < $0 } ?? true
    }
}
