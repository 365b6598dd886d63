import Subscriptions

extension Lane {
    /// The lane of a receipt's next check: edge when somebody's access may change at or soon after it, retry while Apple
    /// tries to charge, else sweep.
    init(of outlooks: [Outlook], next: Instant) {
        if outlooks.contains(where: { $0.isNear(next) }) {
            self = .edge
        } else if outlooks.contains(where: { $0.state == .billingRetry }) {
            self = .retry
        } else {
            self = .sweep
        }
    }

    /// Whether somebody may be waiting for the answer.
    var isUrgent: Bool {
        switch self {
        case .new, .edge: true
        case .retry, .imported, .sweep, .quarantine: false
        }
    }
}

extension Outlook {
    /// How long before an end a check is there for its sake: the widest spread that an app may choose, and the lead.
    private static let nearHours: Int64 = 13

    fileprivate func isNear(_ next: Instant) -> Bool {
        // Apple may charge a refunded subscription again when its period ends, and access comes back then.
        if state == .revoked, !isRenewalOff {
            return next + .hours(Self.nearHours) >= expiresAt && next <= expiresAt + .hours(Self.nearHours)
        }
        guard accessEndsAt != nil || isHeld else { return false }
        return until.map { next + .hours(Self.nearHours) >= $0 } ?? false
    }
}
