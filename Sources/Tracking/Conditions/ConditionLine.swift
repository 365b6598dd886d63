import Logging

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
        app.map { ["failure": "\(name)", "app": "\($0)"] } ?? ["failure": "\(name)"]
    }
}
