import SeededRandom
import Subscriptions

extension Life {
    private var start: Double { inDays(head.purchasedAt) }
    private var end: Double { head.expiresAt.map(inDays) ?? start }
    private var isRefunded: Bool { head.cancelledAt != nil }
    private var isOver: Bool { now >= end }

    private func inDays(_ instant: Instant) -> Double {
        Double(instant.milliseconds - day(0).milliseconds) / 86_400_000
    }

    /// One thing that happens next.
    mutating func turn(using random: inout Seeded) {
        if isRefunded || isOver {
            comeBack(using: &random)
            return
        }
        let moment = now + (end - now) * Double.random(in: 0.1...0.8, using: &random)
        switch Int.random(in: 0..<12, using: &random) {
        case 0: replaceAtOnce(at: moment, using: &random)
        case 1: refund(at: moment, using: &random)
        case 2:
            edit(at: moment) { $0.expiresAt = $0.expiresAt.map { $0 + .days(3) } }
            now = moment
        case 3: refundAnOldPeriod(at: moment)
        case 4: change(moment) { $0.priceConsentStatus = $0.priceConsentStatus == "0" ? "1" : "0" }
        case 5:
            let next = anotherProduct(than: head.productID, &random)
            change(moment) { $0.renewsToProductID = next }
        case 6: change(moment) { $0.willRenew = $0.willRenew != true }
        case 7: chargeAhead(using: &random)
        default: letItEnd(using: &random)
        }
    }

    private func kinds(_ kind: String, _ product: ProductID) -> String {
        product == head.productID ? kind : "product.changed \(kind)"
    }

    private func renewalKind(_ kind: String) -> String {
        head.isTrial == true && !isFamily ? "trial.converted" : kind
    }

    /// An upgrade, or a crossgrade of the same length; the old row loses its value with or without a date.
    private mutating func replaceAtOnce(at moment: Double, using random: inout Seeded) {
        let hasDate = Int.random(in: 0..<3, using: &random) > 0
        edit(at: moment) {
            $0.isUpgraded = true
            $0.cancelledAt = hasDate ? day(moment) : nil
        }
        book(anotherProduct(than: head.productID, &random), at: moment, kinds: "product.changed", using: &random)
        say("active", entitled: true)
    }

    private mutating func refund(at moment: Double, using random: inout Seeded) {
        edit(at: moment) { $0.cancelledAt = day(moment) }
        let isOff = Bool.random(using: &random)
        change(moment) { if isOff { $0.willRenew = false } }
        say(isFamily ? "revoked/family" : "revoked/refund", entitled: false)
        guard Int.random(in: 0..<3, using: &random) == 0 else { return }
        let reversal = moment + (end - moment) / 2
        edit(at: reversal) { $0.cancelledAt = nil }
        now = reversal
        say("active", entitled: true)
    }

    private mutating func refundAnOldPeriod(at moment: Double) {
        now = moment
        let old = rows.indices.dropLast().last { index in
            rows[index].last.map { $0.row.cancelledAt == nil && !$0.row.isUpgraded } ?? false
        }
        if let old { edit(old, at: moment) { $0.cancelledAt = day(moment) } }
    }

    /// The next period is shown before it starts; it may be taken back or replaced before that.
    private mutating func chargeAhead(using random: inout Seeded) {
        guard renewal.willRenew == true else { return }
        let (running, renews) = (rows.count - 1, end)
        let shown = max(now, renews - 0.9) + 0.01
        let product = renewal.renewsToProductID ?? head.productID
        let old = head.productID
        book(
            product, at: renews, shown: shown, kinds: kinds(renewalKind("subscription.renewed"), product),
            using: &random)
        let moment = shown + (renews - shown) / 2
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            edit(at: moment) { $0.cancelledAt = day(moment) }
            change(moment) { $0.willRenew = false }
            say(isFamily ? "revoked/family" : "revoked/refund", entitled: false, at: renews)
        case 1 where product == old:
            for index in [running, running + 1] {
                edit(index, at: moment) {
                    $0.isUpgraded = true
                    $0.cancelledAt = day(moment)
                }
            }
            book(anotherProduct(than: old, &random), at: moment, kinds: "product.changed", using: &random)
            say("active", entitled: true)
        default:
            now = renews
            say("active", entitled: true)
        }
    }

    /// The period ends: renewed, given up, failed.
    private mutating func letItEnd(using random: inout Seeded) {
        let (ending, renews) = (end, renewal.willRenew == true)
        guard renews else {
            change(ending) {
                $0.expirationIntent = "1"
                $0.inBillingRetry = false
            }
            say("expired/voluntary", entitled: false)
            return
        }
        switch Int.random(in: 0..<6, using: &random) {
        case 0: fail(grace: nil, using: &random)
        case 1: fail(grace: ending + 6, using: &random)
        case 2:
            let reasons = ["3": "price_increase", "4": "product_unavailable", "5": "other"]
            let intent = ["3", "4", "5"].randomElement(using: &random) ?? "5"
            change(ending) {
                $0.expirationIntent = intent
                $0.willRenew = false
            }
            say("expired/\(reasons[intent] ?? "")", entitled: false)
        default:
            let product = renewal.renewsToProductID ?? head.productID
            book(product, at: ending, kinds: kinds(renewalKind("subscription.renewed"), product), using: &random)
            say("active", entitled: true)
        }
    }

    private mutating func fail(grace: Double?, using random: inout Seeded) {
        let (ending, product) = (end, head.productID)
        let saysWhy = Bool.random(using: &random)
        change(ending) {
            $0.inBillingRetry = true
            $0.expirationIntent = saysWhy ? "2" : nil
            $0.graceExpiresAt = grace.map(day)
        }
        say(grace == nil ? "billing_retry" : "grace_period", entitled: grace != nil)
        let recovered = renewalKind("subscription.recovered")
        switch Int.random(in: 0..<3, using: &random) {
        case 0 where grace != nil:
            book(product, at: ending, shown: ending + 2, kinds: recovered, using: &random)
            say("active", entitled: true)
        case 1:
            if let grace { say("billing_retry", entitled: false, at: grace) }
            book(product, at: ending + 20, kinds: recovered, using: &random)
            say("active", entitled: true)
        default:
            if let grace { say("billing_retry", entitled: false, at: grace) }
            change(ending + 62) {
                $0.inBillingRetry = false
                $0.expirationIntent = "2"
            }
            say("expired/billing_error", entitled: false)
        }
    }

    /// After an end or a refund: the next renewal of a refunded period, or the customer buys again.
    private mutating func comeBack(using random: inout Seeded) {
        if isRefunded, renewal.willRenew == true {
            let (product, starts) = (renewal.renewsToProductID ?? head.productID, end)
            book(product, at: starts, kinds: kinds(renewalKind("subscription.renewed"), product), using: &random)
            say("active", entitled: true)
            return
        }
        let product = Bool.random(using: &random) ? head.productID : anotherProduct(than: head.productID, &random)
        let gaps: [Double] = [2, 40, 100]
        // Who was refunded may come back long before the refunded period would have ended.
        let over = isRefunded && Bool.random(using: &random) ? now : end
        let back = max(now, start, over) + (gaps.randomElement(using: &random) ?? 2)
        let hasLapsed = renewal.willRenew == false || back - end > 65
        let kind = hasLapsed ? "subscription.reactivated" : renewalKind("subscription.recovered")
        book(product, at: back, kinds: kinds(kind, product), using: &random)
        say("active", entitled: true)
    }
}
