import Ledger
import Subscriptions

/// The marks where the search for due receipts begins in each lane. Receipts due before a mark were claimed; only dead
/// index entries are there.
///
/// While a transaction stays open PostgreSQL cannot remove those, and each search would read all of them. The marks
/// are advisory, because receipts also appear below them: an imported one is placed by its expiry and not by its
/// arrival, one that a worker hands back has its old place, and a slow commit shows its receipts late. So every second
/// a look begins at the start again; less often when that keeps the database busy for long, so that it never takes most
/// of the time.
struct LowWater: Sendable {
    /// The interval between full looks, in seconds.
    static let fullLookSeconds = 1.0
    /// The wait after a full look, as a multiple of the time for which the look kept the database busy.
    static let fullLookRest = 20.0
    /// The longest such wait, in seconds. A receipt below its lane's mark may stay unseen for that long.
    static let fullLookRestSecondsMax = 60.0
    /// Receipts that became due this recently are always looked at: they may have been committed after others were
    /// claimed. While a transaction stays open, each second of the margin costs two dead entries per receipt claimed in
    /// a second.
    static let margin = Delay.seconds(2)

    private struct Place: Hashable {
        let app: Int32
        let lane: Lane
    }

    private var places: [Place: Instant] = [:]
    private var fullLook: (beganAt: ContinuousClock.Instant, marksBefore: [Place: Instant])?
    private var nextFullLookAt: ContinuousClock.Instant?

    /// Returns the marks of a look that begins now; none when it is time for a full look.
    mutating func marks(now: ContinuousClock.Instant) -> [DueMark] {
        if nextFullLookAt.map({ now >= $0 }) ?? true {
            fullLook = (now, places)
            places = [:]
        }
        return places.map { DueMark(appID: $0.app, lane: $0.lane, dueAt: $1) }
    }

    /// Records that a look, which kept the database busy for `busySeconds`, and the claims after it succeeded.
    mutating func looked(now: ContinuousClock.Instant, busySeconds: Double) {
        guard let ended = fullLook else { return }
        let restSeconds = min(busySeconds * Self.fullLookRest, Self.fullLookRestSecondsMax)
        nextFullLookAt = max(ended.beganAt + .seconds(Self.fullLookSeconds), now + .seconds(restSeconds))
        fullLook = nil
    }

    /// Records that a look or the claims after it failed: the marks that a full look was to replace stay valid.
    ///
    /// A database that was too slow is spared for a while. One that was unreachable did no work, so the next look may
    /// be a full one again.
    mutating func failed(now: ContinuousClock.Instant, wasTooSlow: Bool) {
        guard let failed = fullLook else { return }
        places = failed.marksBefore
        if wasTooSlow { nextFullLookAt = now + .seconds(Self.fullLookRestSecondsMax) }
        fullLook = nil
    }

    /// Moves each lane's mark to the last of its claims.
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
