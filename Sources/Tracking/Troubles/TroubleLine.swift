import Logging

/// A log line about a problem.
enum TroubleLine: Sendable, Hashable {
    /// The problem begins, with its reason.
    case began(Concern, reason: String)
    /// The problem is over; it lasted this long.
    case ended(Concern, after: Duration)

    /// The log level of the line.
    var level: Logger.Level {
        switch self {
        case .began(let concern, reason: _): concern.level
        case .ended: .info
        }
    }

    /// The sentence.
    var message: String {
        switch self {
        case .began(let concern, reason: _): concern.began
        case .ended(let concern, after: _): concern.ended
        }
    }

    /// The fields of the line.
    var metadata: Logger.Metadata {
        switch self {
        case .began(let concern, let reason): concern.metadata.merging(["reason": "\(reason)"]) { $1 }
        case .ended(let concern, let time): concern.metadata.merging(["seconds": "\(Int(time.seconds))"]) { $1 }
        }
    }
}

extension Concern {
    fileprivate var metadata: Logger.Metadata {
        app.map { ["trouble": "\(name)", "app": "\($0)"] } ?? ["trouble": "\(name)"]
    }
}
