/// The problems that last. It turns repeated observations into one line for the start and one for the end.
struct TroubleBook: Sendable {
    /// The most problems remembered; one more is not logged.
    static let troublesMax = 1_000

    private struct Standing {
        let since: ContinuousClock.Instant
        /// The start of the time in which all has been well; nil while it is not.
        var wellSince: ContinuousClock.Instant?
    }

    private var standing: [Concern: Standing] = [:]

    /// Whether there is no problem.
    var isEmpty: Bool { standing.isEmpty }

    /// Returns whether a problem has begun and not ended.
    func stands(_ concern: Concern) -> Bool { standing[concern] != nil }

    /// Records a problem; returns a line when it is new.
    mutating func troubled(_ concern: Concern, by reason: String, at now: ContinuousClock.Instant) -> TroubleLine? {
        guard standing[concern] == nil else {
            standing[concern]?.wellSince = nil
            return nil
        }
        guard standing.count < Self.troublesMax else { return nil }
        standing[concern] = Standing(since: now)
        return .began(concern, reason: reason)
    }

    /// Records that all is well; returns a line when that ends a problem.
    mutating func well(_ concern: Concern, at now: ContinuousClock.Instant) -> TroubleLine? {
        guard let trouble = standing[concern] else { return nil }
        if trouble.wellSince == nil { standing[concern]?.wellSince = now }
        return end(concern, at: now)
    }

    /// Ends the problems where all has been well for long enough; returns their lines, the oldest problem first.
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
