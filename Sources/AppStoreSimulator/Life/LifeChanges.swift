/// Changes of the product, and returns of former customers.
extension Life {
    mutating func upgrade() throws(ActionRefused) {
        let head = try replaceablePeriod()
        guard let product = head.product.upgrade else { throw ActionRefused("there is no higher level") }
        replace(head, with: product, as: .upgraded)
    }

    mutating func crossgrade(to wanted: SubscriptionProduct?) throws(ActionRefused) {
        let head = try subscribedPeriod()
        guard let product = wanted ?? head.product.crossgrade, product.isCrossgrade(of: head.product) else {
            throw ActionRefused("there is no such product of the same level")
        }
        guard product.months == head.product.months else {
            return try choose(product, after: head, as: .crossgradeScheduled)
        }
        replace(try replaceablePeriod(), with: product, as: .crossgraded)
    }

    mutating func downgrade(to wanted: SubscriptionProduct?) throws(ActionRefused) {
        let head = try subscribedPeriod()
        let product = wanted ?? head.product.downgrade
        guard head.product.isHigherLevel || !product.isHigherLevel else { throw ActionRefused("that is an upgrade") }
        try choose(product, after: head, as: .downgradeScheduled)
    }

    mutating func resubscribe(
        with wanted: SubscriptionProduct?, plan: BillingPlan? = nil, offer: OfferBalance?
    ) throws(ActionRefused) {
        let head = try ownPeriod()
        guard case .ended = phase else { throw ActionRefused("the subscription is not over") }
        guard periods.count < Life.periodsMax else { throw ActionRefused("the life has its most periods") }
        let product = wanted ?? head.product
        guard product.groupID == head.product.groupID else { throw ActionRefused("that is another group") }
        renewalIsOn = true
        cardFails = false
        obstacle = nil
        renewals = 0
        offerBalance = offer
        nextPlan = plan ?? script.plan
        book(product, purchase: now.wholeSecond, as: .resubscribed)
    }

    /// Redeems an offer: a lapsed customer comes back with it, any other has it from the next renewal on.
    mutating func redeem(_ offer: OfferBalance) throws(ActionRefused) {
        switch offer.offer {
        case .promotional, .offerCode: break
        case .freeTrial, .payAsYouGo, .payUpFront: throw ActionRefused("an introduction is for new customers")
        }
        switch phase {
        case .ended: try resubscribe(with: nil, offer: offer)
        case .subscribed, .retrying:
            let head = try subscribedPeriod()
            guard renewalIsOn else { throw ActionRefused("renewal is off") }
            guard head.payment == nil, head.seats == nil else {
                throw ActionRefused("offers of terms and groups are not known")
            }
            offerBalance = offer
            record(.offerRedeemed, period: head.ordinal)
        }
    }

    private func replaceablePeriod() throws(ActionRefused) -> Period {
        let head = try subscribedPeriod()
        guard head.cancellation == nil else { throw ActionRefused("the period is refunded") }
        guard head.seats == nil else { throw ActionRefused("what happens to the seats of a group is not known") }
        guard head.expires > now else { throw ActionRefused("the next charge is under way") }
        return head
    }

    private mutating func replace(_ head: Period, with product: SubscriptionProduct, as kind: LifeEventKind) {
        let instant = now.wholeSecond
        periods[head.ordinal].cancel(at: instant, reason: 0, isUpgrade: true)
        if !renewalIsOn { record(.renewalEnabled, period: head.ordinal) }
        renewalIsOn = true
        offerBalance = nil
        nextPlan = .upfront
        book(product, purchase: instant, as: kind)
    }

    private mutating func choose(
        _ product: SubscriptionProduct, after head: Period, as kind: LifeEventKind
    ) throws(ActionRefused) {
        guard renewalIsOn else { throw ActionRefused("renewal is off") }
        guard product.groupID == head.product.groupID else { throw ActionRefused("that is another group") }
        guard product != nextProduct else { throw ActionRefused("that product is chosen already") }
        nextProduct = product
        record(product == head.product ? .changeWithdrawn : kind, period: head.ordinal)
    }
}

extension SubscriptionProduct {
    fileprivate func isCrossgrade(of other: SubscriptionProduct) -> Bool {
        self != other && groupID == other.groupID && isHigherLevel == other.isHigherLevel
    }
}
