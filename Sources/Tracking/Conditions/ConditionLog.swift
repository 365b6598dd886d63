import Logging

/// The lasting problems of a process. Each problem is observed many times, and gets one log line when it starts and one
/// when it ends.
struct ConditionLog: Sendable {
    /// The most problems that last at the same time; a further one is not logged.
    static let conditionsMax = 1_000

    private struct Standing {
        let since: ContinuousClock.Instant
        /// The first observation that the problem is gone; nil while it is observed.
        var clearSince: ContinuousClock.Instant?
    }

    private var standing: [Condition: Standing] = [:]

    /// Whether there is no problem.
    var isEmpty: Bool { standing.isEmpty }

    /// Returns whether a problem has begun and not ended.
    func stands(_ condition: Condition) -> Bool { standing[condition] != nil }

    /// Records a problem; returns a line when it is new.
    mutating func raise(_ condition: Condition, by reason: String, at now: ContinuousClock.Instant) -> ConditionLine? {
        guard standing[condition] == nil else {
            standing[condition]?.clearSince = nil
            return nil
        }
        guard standing.count < Self.conditionsMax else { return nil }
        standing[condition] = Standing(since: now)
        return .began(condition, reason: reason)
    }

    /// Records the observation that a problem is gone; returns a line when that ends it.
    mutating func clear(_ condition: Condition, at now: ContinuousClock.Instant) -> ConditionLine? {
        guard let failure = standing[condition] else { return nil }
        if failure.clearSince == nil { standing[condition]?.clearSince = now }
        return end(condition, at: now)
    }

    /// Ends the problems that have been gone for `calmSeconds`; returns their lines, the oldest problem first.
    mutating func endings(at now: ContinuousClock.Instant) -> [ConditionLine] {
        let inOrder = standing.sorted { ($0.value.since, $0.key.name) < ($1.value.since, $1.key.name) }
        return inOrder.compactMap { end($0.key, at: now) }
    }

    private mutating func end(_ condition: Condition, at now: ContinuousClock.Instant) -> ConditionLine? {
        guard let failure = standing[condition], let clearSince = failure.clearSince,
            now - clearSince >= .seconds(condition.calmSeconds)
        else { return nil }
        standing[condition] = nil
        return .ended(condition, after: clearSince - failure.since)
    }
}

/// A log line about a problem.
enum ConditionLine: Sendable, Hashable {
    /// The problem begins, with its reason.
    case began(Condition, reason: String)
    /// The problem is over; it lasted this long.
    case ended(Condition, after: Duration)

    /// The log level of the line.
    var level: Logger.Level {
        switch self {
        case .began(let condition, reason: _): condition.level
        case .ended: .info
        }
    }

    /// The sentence.
    var message: String {
        switch self {
        case .began(let condition, reason: _): condition.began
        case .ended(let condition, after: _): condition.ended
        }
    }

    /// The fields of the line.
    var metadata: Logger.Metadata {
        switch self {
        case .began(let condition, let reason): condition.metadata.merging(["reason": "\(reason)"]) { $1 }
        case .ended(let condition, let time): condition.metadata.merging(["seconds": "\(Int(time.seconds))"]) { $1 }
        }
    }
}

extension Condition {
    fileprivate var metadata: Logger.Metadata {
        app.map { ["condition": "\(name)", "app": "\($0)"] } ?? ["condition": "\(name)"]
    }
}
