extension CustomerTruth {
    init(_ customer: Customer, bundleID: String) {
        self.customer = customer.name
        app = bundleID
        environment = customer.environment
        now = customer.life.now.milliseconds
        accountDeleted = customer.life.accountIsDeleted
        subscriptions = [SubscriptionTruth(customer, bundleID: bundleID)]
        purchases =
            customer.lifetime.map { lifetime in
                [
                    PurchaseTruth(
                        transactionID: customer.ids.lifetimeTransactionID,
                        product: bundleID + "." + SubscriptionProduct.lifetimeSuffix,
                        purchase: lifetime.purchase.milliseconds)
                ]
            } ?? []
    }
}

extension SubscriptionTruth {
    init(_ customer: Customer, bundleID: String) {
        let life = customer.life
        let ids = customer.ids
        originalTransactionID = ids.originalTransactionID
        product = (life.periods.last?.product ?? life.script.product).identifier(in: bundleID)
        autoRenewProduct = life.nextProduct.identifier(in: bundleID)
        autoRenewStatus = life.renewalIsOn
        expirationIntent = life.expirationIntent
        inBillingRetry = life.isInRetry
        graceUntil = life.graceUntil?.milliseconds
        ownership = life.script.isFamilyShared ? "FAMILY_SHARED" : "PURCHASED"
        periods = life.periods.map { period in
            PeriodTruth(
                transactionID: ids.transactionID(of: period.ordinal),
                webOrderLineItemID: life.script.isFamilyShared ? nil : ids.webOrderLineItemID(of: period.ordinal),
                product: period.product.identifier(in: bundleID), booked: period.bookedAt.milliseconds,
                purchase: period.purchase.milliseconds, expires: period.expires.milliseconds, isTrial: period.isTrial,
                cancelled: period.cancellation?.at.milliseconds, upgraded: period.cancellation?.isUpgrade ?? false)
        }
        log = life.happenings.map { happening in
            HappeningTruth(
                at: AppleDates.internet(happening.at), atMilliseconds: happening.at.milliseconds, kind: happening.kind,
                transactionID: happening.ordinal.map { ids.transactionID(of: $0) },
                expirationIntent: happening.expirationIntent)
        }
    }
}
