import Ledger
import Subscriptions

/// From where on each lane is looked at: what was due before was claimed, so only dead entries of the index lie there.
///
/// While a transaction is kept open PostgreSQL cannot remove those, and each look would walk past all of them. The marks are
/// advisory, for receipts come below them too: an imported one has its place by its expiry and not by the time at which it
/// came, one that a worker hands back has its old place, and a slow commit shows its receipts late. So a look begins at the
/// start again every second; less often when the database is busy with it for long, so that it never takes most of the time.
struct LowWater: Sendable {
    /// How often everything is looked at, in seconds.
    static let fullLookSeconds = 1.0
    /// How much longer than such a look keeps the database busy the next one waits.
    static let fullLookRest = 20.0
    /// The longest of these waits, in seconds: that long a receipt below its lane's mark may stay unseen.
    static let fullLookRestSecondsMax = 60.0
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

    /// The marks of a look that begins now; none when it is time to look at everything.
    mutating func marks(now: ContinuousClock.Instant) -> [DueMark] {
        if nextFullLookAt.map({ now >= $0 }) ?? true {
            fullLook = (now, places)
            places = [:]
        }
        return places.map { DueMark(appID: $0.app, lane: $0.lane, dueAt: $1) }
    }

    /// Says that a look, which kept the database busy for `busySeconds`, and the claims after it came to their end.
    mutating func looked(now: ContinuousClock.Instant, busySeconds: Double) {
        guard let ended = fullLook else { return }
        let restSeconds = min(busySeconds * Self.fullLookRest, Self.fullLookRestSecondsMax)
        nextFullLookAt = max(ended.beganAt + .seconds(Self.fullLookSeconds), now + .seconds(restSeconds))
        fullLook = nil
    }

    /// Says that a look or the claims after it failed: what a full look was to replace still holds.
    ///
    /// A database that was too slow is spared for a while. One that was away did nothing, so that the next look may be a full
    /// one again.
    mutating func failed(now: ContinuousClock.Instant, wasTooSlow: Bool) {
        guard let failed = fullLook else { return }
        places = failed.marksBefore
        if wasTooSlow { nextFullLookAt = now + .seconds(Self.fullLookRestSecondsMax) }
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
