/// The actions, applied now. An action that makes no sense is refused and changes nothing.
extension Life {
    /// Applies an action that is about this subscription.
    mutating func apply(_ action: CustomerAction) throws(ActionRefused) {
        guard accountDeletedAt == nil else { throw ActionRefused("the account is deleted") }
        switch action.kind {
        case .refund: try refund(action)
        case .reverseRefund: try reverseRefund(action)
        case .disableRenewal: try disableRenewal()
        case .enableRenewal: try enableRenewal()
        case .failBilling: try failBilling()
        case .recover: try recover()
        case .upgrade: try upgrade()
        case .downgrade: try downgrade(to: action.product)
        case .crossgrade: try crossgrade(to: action.product)
        case .resubscribe: try resubscribe(with: action.product, plan: action.plan, offer: action.balance)
        case .redeemOffer: try redeem(action.balance ?? OfferBalance(.promotional, id: action.offerID))
        case .raisePrice: try raisePrice()
        case .acceptPrice: try acceptPrice()
        case .withdrawProduct: try obstruct(intent: 4)
        case .breakOff: try obstruct(intent: 5)
        case .deleteAccount:
            accountDeletedAt = now
            record(.accountDeleted)
        case .revokeFamily, .revokeSeat: try revoke(action.kind)
        case .switchPlan: try switchPlan()
        case .addSeats: try addSeats(action.seats)
        case .reduceSeats: try reduceSeats(action.seats)
        case .refundSeats: try refundSeats(action)
        case .extend: try extend(seconds: action.seconds)
        case .buy, .approve, .decline, .finish, .refundPurchase, .reversePurchaseRefund, .subscribe, .claimSeat,
            .requestRefund, .declineRefund, .setAccountToken:
            throw ActionRefused("that is not about a subscription that has begun")
        }
    }

    /// Returns the newest period; throws for a member, for whom another customer pays.
    func ownPeriod() throws(ActionRefused) -> Period {
        guard !script.isMember else { throw ActionRefused("a member cannot do this") }
        return head
    }

    /// Returns the newest period while the subscription runs; throws otherwise.
    func subscribedPeriod() throws(ActionRefused) -> Period {
        let head = try ownPeriod()
        guard phase == .subscribed else { throw ActionRefused("the subscription is not running") }
        return head
    }

    /// Refunds a period; the refund of the running one usually ends the subscription.
    private mutating func refund(_ action: CustomerAction) throws(ActionRefused) {
        let head = try ownPeriod()
        let charged = periods.indices.filter { periods[$0].cancellation == nil && periods[$0].purchase <= now }
        let ago = action.periodsAgo ?? 0
        let wanted =
            action.transactionID.map { periodNumber(of: $0) }
            ?? (ago >= 0 && ago < charged.count ? charged[charged.count - 1 - ago] : nil)
        guard let index = wanted, charged.contains(index) else {
            throw ActionRefused("there is no such period to refund")
        }
        periods[index].cancel(at: now, reason: action.reason == 1 ? 1 : 0, isUpgrade: false)
        record(.refunded, period: index)
        // The refund of the newest payment ends its term, whatever the will.
        let endsTerm = index == head.ordinal && head.payment != nil && phase.isLive
        let ends = head.seats != nil || index == head.ordinal
        guard ends, isOver(head), endsTerm || (phase == .subscribed && action.keepsRenewal != true) else { return }
        if renewalIsOn { record(.renewalDisabled, period: index) }
        end(intent: 1)
    }

    /// Takes the refund of a period back.
    private mutating func reverseRefund(_ action: CustomerAction) throws(ActionRefused) {
        let head = try ownPeriod()
        let wanted = action.transactionID.map { periodNumber(of: $0) }
        let refunded = periods.indices.last { index in
            (wanted ?? index) == index && periods[index].cancellation.map { !$0.isUpgrade } ?? false
        }
        guard let index = refunded else { throw ActionRefused("there is no refund to reverse") }
        // What Apple does with a term whose end is taken back, or with a group, is not known.
        guard index != head.ordinal || (head.payment == nil && head.seats == nil) else {
            throw ActionRefused("the term or the group is over")
        }
        periods[index].undoCancellation(at: now)
        record(.refundReversed, period: index)
        // Renewal stays off: the customer regains the period, not the promise to pay again.
        guard index == head.ordinal, head.expires > now, case .ended = phase else { return }
        phase = .subscribed
    }

    private mutating func disableRenewal() throws(ActionRefused) {
        let head = try ownPeriod()
        guard renewalIsOn else { throw ActionRefused("renewal is off already") }
        switch phase {
        case .retrying where owesPayment, .subscribed:
            renewalIsOn = false
            record(.renewalDisabled, period: head.ordinal)
        case .retrying(let graceUntil, let graceIsOver, _):
            // Apple's data for a customer who cancels during grace are unknown, so this is not simulated.
            guard graceUntil == nil || graceIsOver else { throw ActionRefused("not during the grace period") }
            record(.renewalDisabled, period: head.ordinal)
            record(.lapsed, period: head.ordinal, intent: 2)
            end(intent: 2, graceUntil: graceUntil)
        case .ended: throw ActionRefused("the subscription is over")
        }
    }

    private mutating func enableRenewal() throws(ActionRefused) {
        let head = try subscribedPeriod()
        guard !renewalIsOn else { throw ActionRefused("renewal is on already") }
        renewalIsOn = true
        record(.renewalEnabled, period: head.ordinal)
    }

    private mutating func failBilling() throws(ActionRefused) {
        _ = try subscribedPeriod()
        guard !cardFails else { throw ActionRefused("the card fails already") }
        cardFails = true
    }

    /// Lets the card work again; in retry the charge follows at once.
    private mutating func recover() throws(ActionRefused) {
        let head = try ownPeriod()
        guard cardFails else { throw ActionRefused("the card works") }
        switch phase {
        case .subscribed: cardFails = false
        case .retrying(let graceUntil, _, _):
            cardFails = false
            renewals += 1
            // Within grace no day is lost; after it the new period begins with the charge.
            let isInGrace = graceUntil.map { $0 > now } ?? false
            let purchase = isInGrace ? head.expires : max(head.expires, now.wholeSecond)
            book(nextPaidProduct, purchase: purchase, as: .recovered)
        case .ended: throw ActionRefused("the subscription is over")
        }
    }

    /// Takes the family share, or the seat, away.
    private mutating func revoke(_ kind: CustomerAction.Kind) throws(ActionRefused) {
        let isMeant = kind == .revokeSeat ? script.isAssigned : script.isFamilyShared
        guard isMeant else { throw ActionRefused("nothing is shared") }
        guard phase == .subscribed else { throw ActionRefused("the share is over") }
        periods[head.ordinal].cancel(at: now, reason: 0, isUpgrade: false)
        record(.revoked, period: head.ordinal)
        end(intent: nil)
    }

    /// Moves the end of the running period.
    private mutating func extend(seconds: Double?) throws(ActionRefused) {
        let head = try subscribedPeriod()
        guard !head.isTrial, head.cancellation == nil, head.payment == nil, !(head.seats?.isAddition ?? false) else {
            throw ActionRefused("this period cannot be extended")
        }
        let wanted = seconds.map { $0 * 1000 } ?? Double(scale.length(of: head.product)) / 4
        guard wanted > 0, wanted < 90 * 86_400_000 else { throw ActionRefused("an extension is under 90 days") }
        let whole = Int64((wanted / 1000).rounded(.up)) * 1000
        periods[head.ordinal].extend(to: head.expires + whole, at: now)
        record(.extended, period: head.ordinal)
    }

    private mutating func raisePrice() throws(ActionRefused) {
        let head = try subscribedPeriod()
        guard renewalIsOn, priceConsent == nil else { throw ActionRefused("there is no customer to ask") }
        priceConsent = .asked
        record(.priceIncreasePending, period: head.ordinal)
    }

    private mutating func acceptPrice() throws(ActionRefused) {
        let head = try subscribedPeriod()
        guard priceConsent == .asked else { throw ActionRefused("no consent is asked for") }
        priceConsent = .given
        record(.priceIncreaseAccepted, period: head.ordinal)
    }

    /// Sets an obstacle to the next renewal. It stays invisible until the end of the period.
    private mutating func obstruct(intent: Int) throws(ActionRefused) {
        _ = try subscribedPeriod()
        obstacle = intent
    }
}

/// The kind of an event in a customer's life, in the store's own terms.
package enum LifeEventKind: String, Codable, Sendable, CaseIterable {
    /// The first paid period of a subscription.
    case purchased
    /// The first period, free.
    case trialStarted = "trial_started"
    /// The first period of a subscription, at the price of an offer.
    case offerStarted = "offer_started"
    /// The store charged the next period.
    case renewed
    /// The first charge after a free trial.
    case converted
    /// The subscription ended; the expiration intent gives the reason.
    case lapsed
    /// Apple refunded one period.
    case refunded
    /// Apple reversed a refund.
    case refundReversed = "refund_reversed"
    /// The customer turned renewal off.
    case renewalDisabled = "renewal_disabled"
    /// The customer turned renewal on again.
    case renewalEnabled = "renewal_enabled"
    /// A charge failed and billing retry began.
    case billingFailed = "billing_failed"
    /// Billing retry began with a grace period.
    case graceStarted = "grace_started"
    /// The grace period passed without a charge.
    case graceEnded = "grace_ended"
    /// A charge succeeded after a failure.
    case recovered
    /// A higher level began at once.
    case upgraded
    /// Another product of the same level and length began at once.
    case crossgraded
    /// A product of the same level and another length was selected for the next renewal.
    case crossgradeScheduled = "crossgrade_scheduled"
    /// Another product was selected for the next renewal.
    case downgradeScheduled = "downgrade_scheduled"
    /// The selection of another product was cancelled.
    case changeWithdrawn = "change_withdrawn"
    /// The other way to pay was selected for the next renewal.
    case planSwitchScheduled = "plan_switch_scheduled"
    /// A group bought more seats for the running period.
    case seatsAdded = "seats_added"
    /// A group renews with fewer seats.
    case seatsReduced = "seats_reduced"
    /// Apple refunded some seats of a transaction.
    case seatsRefunded = "seats_refunded"
    /// The next period was charged for another product.
    case changedAtRenewal = "changed_at_renewal"
    /// The customer redeemed an offer for the next renewals.
    case offerRedeemed = "offer_redeemed"
    /// The price rises, and without consent the subscription ends.
    case priceIncreasePending = "price_increase_pending"
    /// The customer agreed to the higher price.
    case priceIncreaseAccepted = "price_increase_accepted"
    /// A lapsed customer bought again.
    case resubscribed
    /// A family member lost a shared subscription.
    case revoked
    /// The end of the same period moved later.
    case extended
    /// The account is deleted; Apple answers 21010 from now on.
    case accountDeleted = "account_deleted"
}

struct LifeEvent: Sendable {
    let at: StoreTime
    let kind: LifeEventKind
    /// The period concerned, if any.
    let ordinal: Int?
    let expirationIntent: Int?
}
