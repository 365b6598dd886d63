/// Named scripts for the usual lives.
public enum ScriptKind: String, Codable, Sendable, CaseIterable {
    /// The seed decides everything.
    case seeded
    /// Renews until the limit.
    case loyal
    /// Turns renewal off in the first period.
    case cancels
    /// Turns renewal off and back on, again in every third period.
    case wavers
    /// Is refunded in the second period.
    case refunded
    /// Is refunded and the refund is taken back.
    case refundReversed = "refund_reversed"
    /// A free trial that becomes paid.
    case trialConverts = "trial_converts"
    /// A free trial that does not.
    case trialEnds = "trial_ends"
    /// A failed charge, a grace period, and a charge within it.
    case graceRecovers = "grace_recovers"
    /// A failed charge, a grace period, and no charge.
    case graceEnds = "grace_ends"
    /// A failed charge without grace, charged later.
    case retryRecovers = "retry_recovers"
    /// A failed charge without grace, never charged.
    case retryEnds = "retry_ends"
    /// Goes to the higher level in the second period.
    case upgrades
    /// Leaves the higher level at the first renewal.
    case downgrades
    /// Lapses and comes back.
    case resubscribes
    /// A family member whose share is taken away in the second period.
    case familyRevoked = "family_revoked"
    /// Deletes the account in the second period.
    case deletesAccount = "deletes_account"

    /// The script of this name.
    public var script: CustomerScript {
        var script = CustomerScript()
        switch self {
        case .seeded: script.isDrawn = true
        case .loyal: break
        case .trialConverts: script.startsWithTrial = true
        case .trialEnds: script.startsWithTrial = true
        case .graceRecovers, .graceEnds: script.hasGrace = true
        case .downgrades: script.product = .plusMonthly
        case .familyRevoked: script.isFamilyShared = true
        case .cancels, .wavers, .refunded, .refundReversed, .retryRecovers, .retryEnds, .upgrades, .resubscribes,
            .deletesAccount:
            break
        }
        script.steps = steps
        return script
    }

    private var steps: [CustomerScript.Step] {
        switch self {
        case .seeded, .loyal, .trialConverts: []
        case .cancels, .trialEnds: [.init(period: 0, at: 0.5, .disableRenewal)]
        case .wavers:
            stride(from: 0, to: 30, by: 3).flatMap { period in
                [
                    CustomerScript.Step(period: period, at: 0.3, .disableRenewal),
                    CustomerScript.Step(period: period, at: 0.6, .enableRenewal),
                ]
            }
        case .refunded: [.init(period: 1, at: 0.5, .refund)]
        case .refundReversed:
            [.init(period: 1, at: 0.3, .refund), .init(period: 1, at: 0.6, .reverseRefund)]
        case .graceRecovers:
            [.init(period: 0, at: 0.5, .failBilling), .init(period: 0, at: 1.2, .recover)]
        case .retryRecovers:
            [.init(period: 0, at: 0.5, .failBilling), .init(period: 0, at: 1.7, .recover)]
        case .graceEnds, .retryEnds: [.init(period: 0, at: 0.5, .failBilling)]
        case .upgrades: [.init(period: 1, at: 0.5, .upgrade)]
        case .downgrades: [.init(period: 0, at: 0.5, .downgrade)]
        case .resubscribes:
            [.init(period: 0, at: 0.5, .disableRenewal), .init(period: 0, at: 2, .resubscribe)]
        case .familyRevoked: [.init(period: 1, at: 0.5, .revokeFamily)]
        case .deletesAccount: [.init(period: 1, at: 0.5, .deleteAccount)]
        }
    }
}
