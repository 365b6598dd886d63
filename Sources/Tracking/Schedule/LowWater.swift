import Ledger
import Subscriptions

/// From where on each lane is looked at: what was due before was claimed, so only dead entries of the index lie there.
///
/// While somebody keeps a transaction open PostgreSQL cannot remove those, and each look would walk past all of them. The
/// marks are advisory: every half minute one look begins at the start again, because what was due earlier may have
/// been added late.
struct LowWater: Sendable {
    /// How often everything is looked at, in seconds.
    static let fullLookSeconds = 30.0
    /// What became due so lately is always looked at: it may have been committed after others were claimed.
    static let margin = Delay.seconds(60)

    private struct Place: Hashable {
        let app: Int32
        let lane: Lane
    }

    private var places: [Place: Instant] = [:]
    private var fullLookAt: ContinuousClock.Instant?

    /// The marks of a look that begins now.
    mutating func marks(now: ContinuousClock.Instant) -> [DueMark] {
        if fullLookAt.map({ now - $0 >= .seconds(Self.fullLookSeconds) }) ?? true {
            places = [:]
            fullLookAt = now
        }
        return places.map { DueMark(appID: $0.app, lane: $0.lane, dueAt: $1) }
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
