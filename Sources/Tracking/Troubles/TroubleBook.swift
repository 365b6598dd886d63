/// Which troubles stand: turns what is seen again and again into one line for a begin and one for an end.
struct TroubleBook: Sendable {
    /// Troubles that are remembered, at most; one more is not logged.
    static let troublesMax = 1_000

    private struct Standing {
        let since: ContinuousClock.Instant
        /// Since when all has been well; nil while it has not.
        var wellSince: ContinuousClock.Instant?
    }

    private var standing: [Concern: Standing] = [:]

    /// Whether nothing is the matter.
    var isEmpty: Bool { standing.isEmpty }

    /// Whether a trouble has begun and not ended.
    func stands(_ concern: Concern) -> Bool { standing[concern] != nil }

    /// Takes in that something is the matter: a line when that is news.
    mutating func troubled(_ concern: Concern, by reason: String, at now: ContinuousClock.Instant) -> TroubleLine? {
        guard standing[concern] == nil else {
            standing[concern]?.wellSince = nil
            return nil
        }
        guard standing.count < Self.troublesMax else { return nil }
        standing[concern] = Standing(since: now)
        return .began(concern, reason: reason)
    }

    /// Takes in that all is well: a line when a trouble is over by that.
    mutating func well(_ concern: Concern, at now: ContinuousClock.Instant) -> TroubleLine? {
        guard let trouble = standing[concern] else { return nil }
        if trouble.wellSince == nil { standing[concern]?.wellSince = now }
        return end(concern, at: now)
    }

    /// The troubles that are over because all has been well for long enough, those that began first before others.
    mutating func endings(at now: ContinuousClock.Instant) -> [TroubleLine] {
        let inOrder = standing.sorted { ($0.value.since, $0.key.name) < ($1.value.since, $1.key.name) }
        return inOrder.compactMap { end($0.key, at: now) }
    }

    private mutating func end(_ concern: Concern, at now: ContinuousClock.Instant) -> TroubleLine? {
        guard let trouble = standing[concern], let wellSince = trouble.wellSince,
            now - wellSince >= .seconds(concern.calmSeconds)
        else { return nil }
        standing[concern] = nil
        return .ended(concern, after: wellSince - trouble.since)
    }
}
