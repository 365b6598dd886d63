import Logging

/// A line of the log about a trouble.
enum TroubleLine: Sendable, Hashable {
    /// It begins, and why.
    case began(Concern, reason: String)
    /// It is over; it lasted so long.
    case ended(Concern, after: Duration)

    /// How important the line is.
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

    /// What belongs to it.
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
