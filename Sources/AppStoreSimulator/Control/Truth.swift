/// The store's data about one customer at one instant, in the store's own terms. Instants are milliseconds since 1970.
package struct CustomerTruth: Codable, Sendable {
    /// The name, like `c000017`.
    package var customer: String
    /// The bundle id of the app.
    package var app: String
    package var environment: StoreEnvironment
    /// The instant of these data.
    package var now: Int64
    /// Whether the account is deleted; Apple answers 21010 from then on.
    package var accountDeleted: Bool
    /// A second customer of the app on the same Apple account.
    package var secondCustomer: String?
    /// The token the app passes to Apple with purchases.
    package var appAccountToken: String?
    /// Whether the devices send receipts of iOS 6, which show only the newest period and their own.
    package var hasLegacyReceipts: Bool
    /// All subscriptions that have begun; usually one.
    package var subscriptions: [SubscriptionTruth]
    /// One-time purchases.
    package var purchases: [PurchaseTruth]
    /// What must have been delivered to the customers of the account: one-time purchases and periods.
    package var deliveries: [DeliveryTruth]
    /// Purchases that wait for an approval.
    package var pendingPurchases: [PendingTruth]

    enum CodingKeys: String, CodingKey {
        case customer, app, environment, subscriptions, purchases, deliveries
        case pendingPurchases = "pending_purchases"
        case now = "now_ms"
        case accountDeleted = "account_deleted"
        case secondCustomer = "second_customer"
        case appAccountToken = "app_account_token"
        case hasLegacyReceipts = "legacy_receipts"
    }
}

/// Whether Apple's data entitle a customer, and why.
package enum AccessTruth: String, Codable, Sendable, CaseIterable {
    /// A running period that was not cancelled.
    case paid
    /// A charge failed, and the grace period runs.
    case grace
    /// No access.
    case none
}

/// One subscription.
package struct SubscriptionTruth: Codable, Sendable {
    /// Apple's id of the chain.
    package var originalTransactionID: String
    package var product: String
    package var group: String
    /// Whether it entitles at this instant.
    package var access: AccessTruth
    /// Apple's `status`, 1 to 5, as the Server API and notifications say it.
    package var appleStatus: AppleStatus
    package var autoRenewProduct: String
    /// Whether renewal is on; within a term, whether Apple will try the next payment.
    package var autoRenewStatus: Bool
    /// The term of payments that runs.
    package var term: TermTruth?
    package var renewalSeats: Int?
    /// Apple's code, 1 to 5, once the subscription ended or is in retry.
    package var expirationIntent: Int?
    package var inBillingRetry: Bool
    /// The end of the grace period, even after it has passed.
    package var graceUntil: Int64?
    /// Whether the customer was asked for consent to a higher price and has not answered.
    package var priceConsentPending: Bool
    /// `PURCHASED`, `FAMILY_SHARED` or `ASSIGNED`.
    package var ownership: String
    /// The periods in the order they were booked.
    package var periods: [PeriodTruth]
    /// The events, in order.
    package var log: [LifeEventTruth]

    enum CodingKeys: String, CodingKey {
        case product, group, access, ownership, periods, log, term
        case renewalSeats = "renewal_seats"
        case appleStatus = "apple_status"
        case originalTransactionID = "original_transaction_id"
        case autoRenewProduct = "auto_renew_product"
        case autoRenewStatus = "auto_renew_status"
        case expirationIntent = "expiration_intent"
        case inBillingRetry = "in_billing_retry"
        case graceUntil = "grace_until_ms"
        case priceConsentPending = "price_consent_pending"
    }
}

/// A term of payments, and what the customer wants after it.
package struct TermTruth: Codable, Sendable {
    /// The number of the newest payment, from 1.
    package var payment: Int
    package var payments: Int
    package var ends: Int64
    /// Whether the term renews: the customer's will.
    package var autoRenewStatus: Bool
    package var autoRenewProduct: String
    package var followingPlan: BillingPlan

    enum CodingKeys: String, CodingKey {
        case payment, payments
        case ends = "ends_ms"
        case autoRenewStatus = "auto_renew_status"
        case autoRenewProduct = "auto_renew_product"
        case followingPlan = "following_plan"
    }
}

/// One period of a subscription.
package struct PeriodTruth: Codable, Sendable {
    /// The server's transaction id of the row.
    package var transactionID: String
    /// Absent for family members.
    package var webOrderLineItemID: String?
    package var product: String
    /// When the store charged the period and first showed it.
    package var booked: Int64
    /// Its start.
    package var purchase: Int64
    /// Its end.
    package var expires: Int64
    package var isTrial: Bool
    package var offer: PeriodOffer?
    /// When it was refunded, revoked or replaced.
    package var cancelled: Int64?
    /// Whether a product of a higher level replaced it.
    package var upgraded: Bool
    package var plan: BillingPlan
    package var payment: Int?
    /// The end of the term, as known with this payment.
    package var termEnds: Int64?
    /// The seats of a group's transaction, and of a member's.
    package var seats: Int?
    /// How many of them were refunded.
    package var revokedSeats: Int
    /// Whether the seats were added within a period that has other seats.
    package var isAddition: Bool
    /// What the customer paid, in thousandths of the currency; nothing for a member.
    package var paid: Int64
    /// What the customer got back of it.
    package var returned: Int64
    package var currency: String

    enum CodingKeys: String, CodingKey {
        case product, upgraded, offer, plan, payment, seats, paid, returned, currency
        case termEnds = "term_ends_ms"
        case revokedSeats = "revoked_seats"
        case isAddition = "addition"
        case transactionID = "transaction_id"
        case webOrderLineItemID = "web_order_line_item_id"
        case booked = "booked_ms"
        case purchase = "purchase_ms"
        case expires = "expires_ms"
        case isTrial = "is_trial"
        case cancelled = "cancelled_ms"
    }
}

/// One event of a subscription.
package struct LifeEventTruth: Codable, Sendable {
    /// When the store first showed it, as RFC 3339 text in whole seconds, for human readers.
    package var at: String
    /// The same instant in milliseconds since 1970.
    package var atMilliseconds: Int64
    package var kind: LifeEventKind
    /// The transaction id of the period it conditions.
    package var transactionID: String?
    /// For `lapsed`.
    package var expirationIntent: Int?

    enum CodingKeys: String, CodingKey {
        case at, kind
        case atMilliseconds = "at_ms"
        case transactionID = "transaction_id"
        case expirationIntent = "expiration_intent"
    }
}

/// A one-time purchase.
package struct PurchaseTruth: Codable, Sendable {
    package var transactionID: String
    package var product: String
    /// The date of the purchase.
    package var purchase: Int64
    /// The date of Apple's refund.
    package var refunded: Int64?
    /// Whether Apple's responses list it; they no longer list finished coins.
    package var isListed: Bool

    enum CodingKeys: String, CodingKey {
        case product
        case transactionID = "transaction_id"
        case purchase = "purchase_ms"
        case refunded = "refunded_ms"
        case isListed = "listed"
    }
}

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
        purchases = account.bought.map { purchase in
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
        let head = life.head.product
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
    /// Returns the access that Apple's data grant: by a period that was not cancelled, or by a grace period.
    fileprivate func access(at now: StoreTime) -> AccessTruth {
        switch status(at: now) {
        case .active: isPaid(at: now) ? .paid : .none
        case .gracePeriod: .grace
        case .expired, .billingRetry, .revoked: .none
        }
    }
}
