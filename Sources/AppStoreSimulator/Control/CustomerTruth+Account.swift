extension CustomerTruth {
    init(_ account: Account, in world: World) {
        customer = account.name
        secondCustomer = account.hasSecondCustomer ? Seat.second.name(of: account.index) : nil
        app = world.bundleID
        environment = account.environment
        now = account.now.milliseconds
        accountDeleted = account.isDeleted
        appAccountToken = world.accountToken(of: account)
        hasLegacyReceipts = account.script.sendsLegacyReceipts
        subscriptions = account.begun.map { SubscriptionTruth($0, of: account, in: world) }
        purchases = account.purchases.purchases.filter { $0.bookedAt <= account.now }.map { purchase in
            PurchaseTruth(
                transactionID: account.ids.purchase(purchase.ordinal),
                product: purchase.product.identifier(in: world.bundleID), purchase: purchase.at.milliseconds,
                refunded: purchase.refund(asOf: account.now)?.milliseconds,
                isListed: purchase.isListed(at: account.now))
        }
        deliveries = DeliveryTruth.all(of: account, in: world)
        pendingPurchases = account.purchases.pending.map { PendingTruth($0, of: account, in: world) }
    }
}

extension SubscriptionTruth {
    init(_ life: Life, of account: Account, in world: World) {
        let (now, bundleID) = (account.now, world.bundleID)
        let ids = life.ids
        let head = life.periods.last?.product ?? life.script.product
        originalTransactionID = ids.originalTransactionID
        product = head.identifier(in: bundleID)
        group = head.groupID
        appleStatus = life.status(at: now)
        access = life.access(at: now)
        autoRenewProduct = life.nextPaidProduct.identifier(in: bundleID)
        autoRenewStatus = life.nextPaymentIsOn
        term = life.runningPayment.map { payment in
            TermTruth(
                payment: payment.number, payments: Payment.total, ends: payment.termEnds.milliseconds,
                autoRenewStatus: life.renewalIsOn, autoRenewProduct: life.nextProduct.identifier(in: bundleID),
                followingPlan: life.followingPlan)
        }
        renewalSeats = life.nextSeats
        expirationIntent = life.expirationIntent
        inBillingRetry = life.isInRetry
        graceUntil = life.graceUntil?.milliseconds
        priceConsentPending = life.priceConsent == .asked
        ownership = life.script.ownership
        periods = life.periods.map { period in
            let signed = SignedTransaction(period, of: life, account, in: world)
            return PeriodTruth(
                transactionID: ids.transactionID(of: period.ordinal),
                webOrderLineItemID: life.script.isMember ? nil : ids.webOrderLineItemID(of: period.ordinal),
                product: period.product.identifier(in: bundleID), booked: period.bookedAt.milliseconds,
                purchase: period.purchase.milliseconds, expires: period.expires.milliseconds, isTrial: period.isTrial,
                offer: period.offer, cancelled: period.cancellation?.at.milliseconds,
                upgraded: period.cancellation?.isUpgrade ?? false, plan: period.plan,
                payment: period.payment?.number, termEnds: period.payment?.termEnds.milliseconds,
                seats: period.seats?.count, revokedSeats: period.seats?.revoked ?? 0,
                isAddition: period.seats?.isAddition ?? false, paid: signed.paid, returned: signed.returned,
                currency: signed.storefront.currency)
        }
        log = life.lifeEvents.map { lifeEvent in
            LifeEventTruth(
                at: AppleDates.internet(lifeEvent.at), atMilliseconds: lifeEvent.at.milliseconds, kind: lifeEvent.kind,
                transactionID: lifeEvent.ordinal.map { ids.transactionID(of: $0) },
                expirationIntent: lifeEvent.expirationIntent)
        }
    }
}

extension Life {
    /// Returns the access that Apple's data grant at an instant: by a period that was not cancelled, or by a grace
    /// period.
    fileprivate func access(at now: StoreTime) -> AccessTruth {
        switch status(at: now) {
        case .active: isPaid(at: now) ? .paid : .none
        case .gracePeriod: .grace
        case .expired, .billingRetry, .revoked: .none
        }
    }
}
