import Ledger
import Subscriptions

/// From where on each lane is looked at: what was due before was claimed, so only dead entries of the index lie there.
///
/// While somebody keeps a transaction open PostgreSQL cannot remove those, and each look would walk past all of them. The
/// marks are advisory: every half minute one look begins at the start again, because what was due earlier may have
/// been added late; less often when such a look takes long, so that it never takes most of the time.
struct LowWater: Sendable {
    /// How often everything is looked at, in seconds.
    static let fullLookSeconds = 30.0
    /// How much longer than such a look takes the next one waits.
    static let fullLookRest = 20.0
    /// What became due so lately is always looked at: it may have been committed after others were claimed. While a
    /// transaction is kept open, each second of it costs two dead entries for every receipt claimed in a second.
    static let margin = Delay.seconds(2)

    private struct Place: Hashable {
        let app: Int32
        let lane: Lane
    }

    private var places: [Place: Instant] = [:]
    private var fullLook: (beganAt: ContinuousClock.Instant, marksBefore: [Place: Instant])?
    private var nextFullLookAt: ContinuousClock.Instant?

    /// The marks of a look that begins now. One that was begun before and did not end has failed: what it was to replace
    /// still holds.
    mutating func marks(now: ContinuousClock.Instant) -> [DueMark] {
        if let failed = fullLook {
            places = failed.marksBefore
            end(failed.beganAt, now: now)
        }
        if nextFullLookAt.map({ now >= $0 }) ?? true {
            fullLook = (now, places)
            places = [:]
        }
        return places.map { DueMark(appID: $0.app, lane: $0.lane, dueAt: $1) }
    }

    /// Says that a look and the claims after it came to their end.
    mutating func looked(now: ContinuousClock.Instant) {
        if let ended = fullLook { end(ended.beganAt, now: now) }
    }

    private mutating func end(_ beganAt: ContinuousClock.Instant, now: ContinuousClock.Instant) {
        nextFullLookAt = max(beganAt + .seconds(Self.fullLookSeconds), now + (now - beganAt) * Self.fullLookRest)
        fullLook = nil
    }

    /// Moves the marks to the last of what was claimed in each lane.
    mutating func advance(past claims: [Claim]) {
        for claim in claims {
            advance(claim.app.id, claim.lane, dueAt: claim.dueAt, claimedAt: claim.claimedAt)
        }
    }

    mutating func advance(_ app: Int32, _ lane: Lane, dueAt: Instant, claimedAt: Instant) {
        let place = Place(app: app, lane: lane)
        let mark = min(dueAt, claimedAt - Self.margin)
        places[place] = max(places[place] ?? mark, mark)
    }
}
