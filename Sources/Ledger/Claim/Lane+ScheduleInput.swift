package import Subscriptions

extension Lane {
    /// Chooses the lane of a receipt's next check: expiring when a customer's access may change at or soon after the
    /// check, retry while Apple tries to charge, otherwise sweep.
    package init(of inputs: [ScheduleInput], next: Instant) {
        if inputs.contains(where: { $0.isNear(next) }) {
            self = .expiring
        } else if inputs.contains(where: { $0.state == .billingRetry }) {
            self = .retry
        } else {
            self = .sweep
        }
    }

    /// Whether a customer may be waiting for the answer.
    var isUrgent: Bool {
        switch self {
        case .new, .expiring: true
        case .retry, .imported, .sweep, .quarantine: false
        }
    }
}

extension ScheduleInput {
    /// How long before an end a check counts as near to it: the widest spread that an app may choose, plus the lead.
    private static let nearHours: Int64 = 13

    fileprivate func isNear(_ next: Instant) -> Bool {
        // Apple may charge a refunded subscription again when its period ends; access then returns.
        if state == .revoked, !isRenewalOff {
            return next + .hours(Self.nearHours) >= expiresAt && next <= expiresAt + .hours(Self.nearHours)
        }
        guard accessEndsAt != nil || isInOutageAllowance else { return false }
        // What is charged already goes on beyond the end of the present period.
        let end = state == .active ? expiresAt : until
        return end.map { next + .hours(Self.nearHours) >= $0 } ?? false
    }
}
