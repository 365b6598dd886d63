/// Named scripts for common lives.
package enum ScriptKind: String, Codable, Sendable, CaseIterable {
    /// The seed decides everything.
    case seeded
    /// Renews until the limit.
    case loyal
    /// Turns renewal off in the first period.
    case cancels
    /// Turns renewal off and back on, every third period.
    case wavers
    /// Is refunded in the second period.
    case refunded
    /// Is refunded; the refund is then reversed.
    case refundReversed = "refund_reversed"
    /// A free trial that becomes paid.
    case trialConverts = "trial_converts"
    /// A free trial that does not become paid.
    case trialEnds = "trial_ends"
    /// Three cheaper periods, then the full price.
    case payAsYouGo = "pay_as_you_go"
    /// A longer first period, paid in advance, then the full price.
    case payUpFront = "pay_up_front"
    /// Begins with an offer code.
    case offerCode = "offer_code"
    /// Takes a promotional offer in the first period.
    case promotionalOffer = "promotional_offer"
    /// A failed charge, a grace period, and a charge within it.
    case graceRecovers = "grace_recovers"
    /// A failed charge, a grace period, and no charge.
    case graceEnds = "grace_ends"
    /// A failed charge without grace, charged later.
    case retryRecovers = "retry_recovers"
    /// A failed charge without grace, never charged.
    case retryEnds = "retry_ends"
    /// Moves to the higher level in the second period.
    case upgrades
    /// Moves to the lower level at the first renewal.
    case downgrades
    /// Changes to another product of the same level and length in the second period.
    case crossgrades
    /// Is asked for consent to a higher price in the second period and agrees.
    case priceAccepted = "price_accepted"
    /// Is asked for consent to a higher price, does not answer and lapses.
    case priceRefused = "price_refused"
    /// The product is not for sale at the second renewal.
    case withdrawn
    /// The subscription ends after the second period for a reason Apple does not give.
    case brokenOff = "broken_off"
    /// Is refunded for the first period during the second.
    case olderRefunded = "older_refunded"
    /// The end of the second period moves later.
    case extended
    /// Buys coins repeatedly and owns the lifetime purchase.
    case buysCoins = "buys_coins"
    /// Has bought nothing.
    case newcomer
    /// Also subscribes to the magazine, which is another group.
    case twoGroups = "two_groups"
    /// A second customer of the app restores on the account in the second period.
    case sharesAccount = "shares_account"
    /// Sends receipts of iOS 6.
    case legacy
    /// Lapses and comes back.
    case resubscribes
    /// A family member whose share is revoked in the second period.
    case familyRevoked = "family_revoked"
    /// Pays a yearly term month by month.
    case commits
    /// Pays a term, turns renewal off in the third month, and lapses at its end.
    case commitmentCancelled = "commitment_cancelled"
    /// The second payment of a term fails; a charge succeeds later and moves the term.
    case commitmentRecovers = "commitment_recovers"
    /// The second payment of a term fails for good.
    case commitmentFails = "commitment_fails"
    /// The current payment of a term is refunded in the second month.
    case commitmentRefunded = "commitment_refunded"
    /// Pays a term, and chooses to pay the next year at once.
    case commitmentSwitches = "commitment_switches"
    /// Buys seats for a group: more in the second period, fewer from the third; some are refunded.
    case buysSeats = "buys_seats"
    /// Gets a seat of a group, which is revoked in the second period.
    case seatRevoked = "seat_revoked"
    /// Deletes the account in the second period.
    case deletesAccount = "deletes_account"

    /// The script of this name.
    package var script: CustomerScript {
        var script = CustomerScript()
        switch self {
        case .seeded: script.isDrawn = true
        case .loyal: break
        case .trialConverts, .trialEnds: script.startOffer = .freeTrial
        case .payAsYouGo: script.startOffer = .payAsYouGo
        case .payUpFront: script.startOffer = .payUpFront
        case .offerCode: script.startOffer = .offerCode
        case .buysCoins:
            script.ownsLifetime = true
            script.coinsEveryMonths = 0.5
        case .newcomer:
            script.subscribes = false
            script.beginsEmpty = true
        case .twoGroups:
            var magazine = CustomerScript()
            magazine.product = .magazineMonthly
            script.alongside = [magazine]
        case .sharesAccount: script.secondCustomerAfterMonths = 1.5
        case .legacy: script.sendsLegacyReceipts = true
        case .graceRecovers, .graceEnds: script.hasGrace = true
        case .downgrades: script.product = .plusMonthly
        case .familyRevoked: script.isFamilyShared = true
        case .commits, .commitmentCancelled, .commitmentRecovers, .commitmentFails, .commitmentRefunded,
            .commitmentSwitches:
            (script.product, script.plan) = (.yearly, .monthly)
        case .buysSeats: script.seats = 7
        case .seatRevoked: (script.isAssigned, script.seats) = (true, 7)
        case .cancels, .wavers, .refunded, .refundReversed, .retryRecovers, .retryEnds, .upgrades, .resubscribes,
            .deletesAccount, .promotionalOffer, .crossgrades, .priceAccepted, .priceRefused, .withdrawn, .brokenOff,
            .olderRefunded, .extended:
            break
        }
        script.steps = steps
        return script
    }

    private var steps: [CustomerScript.Step] {
        switch self {
        case .seeded, .loyal, .trialConverts, .payAsYouGo, .payUpFront, .offerCode, .buysCoins, .newcomer,
            .twoGroups, .sharesAccount, .legacy, .commits:
            []
        case .cancels, .trialEnds: [.init(period: 0, at: 0.5, .disableRenewal)]
        case .wavers:
            stride(from: 0, to: 30, by: 3).flatMap { period -> [CustomerScript.Step] in
                [.init(period: period, at: 0.3, .disableRenewal), .init(period: period, at: 0.6, .enableRenewal)]
            }
        case .promotionalOffer: [.init(period: 0, at: 0.5, .redeemOffer)]
        case .crossgrades: [.init(period: 1, at: 0.5, .crossgrade)]
        case .priceAccepted: [.init(period: 1, at: 0.3, .raisePrice), .init(period: 1, at: 0.6, .acceptPrice)]
        case .priceRefused: [.init(period: 1, at: 0.3, .raisePrice)]
        case .withdrawn: [.init(period: 1, at: 0.5, .withdrawProduct)]
        case .brokenOff: [.init(period: 1, at: 0.5, .breakOff)]
        case .extended: [.init(period: 1, at: 0.5, .extend)]
        case .olderRefunded: [.init(period: 1, at: 0.5, action: .refundBefore)]
        case .refunded, .commitmentRefunded: [.init(period: 1, at: 0.5, .refund)]
        case .refundReversed: [.init(period: 1, at: 0.3, .refund), .init(period: 1, at: 0.6, .reverseRefund)]
        case .graceRecovers: [.init(period: 0, at: 0.5, .failBilling), .init(period: 0, at: 1.2, .recover)]
        case .retryRecovers: [.init(period: 0, at: 0.5, .failBilling), .init(period: 0, at: 1.7, .recover)]
        case .graceEnds, .retryEnds, .commitmentFails: [.init(period: 0, at: 0.5, .failBilling)]
        case .upgrades: [.init(period: 1, at: 0.5, .upgrade)]
        case .downgrades: [.init(period: 0, at: 0.5, .downgrade)]
        case .resubscribes: [.init(period: 0, at: 0.5, .disableRenewal), .init(period: 0, at: 2, .resubscribe)]
        case .familyRevoked: [.init(period: 1, at: 0.5, .revokeFamily)]
        case .commitmentCancelled: [.init(period: 2, at: 0.5, .disableRenewal)]
        case .commitmentRecovers: [.init(period: 0, at: 0.5, .failBilling), .init(period: 0, at: 1.5, .recover)]
        case .commitmentSwitches: [.init(period: 4, at: 0.5, .switchPlan)]
        case .buysSeats:
            [
                .init(period: 1, at: 0.3, action: .threeSeats), .init(period: 1, at: 0.6, .reduceSeats),
                .init(period: 1, at: 0.8, .refundSeats),
            ]
        case .seatRevoked: [.init(period: 1, at: 0.5, .revokeSeat)]
        case .deletesAccount: [.init(period: 1, at: 0.5, .deleteAccount)]
        }
    }
}

extension CustomerAction {
    /// Three more seats for a group.
    fileprivate static var threeSeats: CustomerAction {
        var added = CustomerAction(.addSeats)
        added.seats = 3
        return added
    }

    /// A refund of the period before the running one.
    fileprivate static var refundBefore: CustomerAction {
        var refund = CustomerAction(.refund)
        refund.periodsAgo = 1
        return refund
    }
}
