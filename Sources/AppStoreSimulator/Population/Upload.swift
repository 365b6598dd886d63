/// One receipt that a device sent to the app's server.
struct Upload: Sendable {
    let customer: String
    let at: StoreTime
    let reason: UploadReason
    let restore: Int
}

/// The reason a device sent a receipt.
package enum UploadReason: String, Codable, Sendable, CaseIterable {
    /// A purchase, including one of another product in place of the old one.
    case purchase
    /// A lapsed customer bought again.
    case resubscription
    /// A renewal, from an app that sends every renewal.
    case renewal
    /// A restore on the device, perhaps for another customer of the app.
    case restore
}

/// The kind of receipt a device has.
package enum DeviceReceipt: String, Codable, Sendable, CaseIterable {
    /// A receipt with its creation date.
    case dated
    /// The transaction receipt of iOS 6, which has no creation date; a dated one where no subscription had begun.
    case undated
    /// A receipt of another app.
    case foreign
    /// A receipt of another app, whose secret is another one, that also names this app: only the store can tell.
    case disguised
}

extension Account {
    /// Returns the restore whose ids a receipt of a customer's device carries; 0 is none.
    func restore(at creation: StoreTime, of seat: Seat = .first) -> Int {
        switch seat {
        case .first: script.hasRestored && creation >= firstReceiptCreation ? 1 : 0
        case .second: seat.ownRestore
        }
    }

    /// The uploads of the devices until now, in order; at most one receipt per instant.
    var uploads: [Upload] {
        var found: [Upload] = []
        for life in begun {
            for lifeEvent in life.lifeEvents {
                guard let reason = lifeEvent.kind.upload, reason != .renewal || script.sendsRenewals else { continue }
                let seat = lifeEvent.ordinal.map { life.periods[$0].buyer.seat } ?? .first
                found.append(upload(at: lifeEvent.at, reason, of: seat))
            }
        }
        for purchase in purchases.purchases where purchase.bookedAt <= now {
            found.append(upload(at: purchase.bookedAt, .purchase, of: purchase.buyer.seat))
        }
        if script.hasRestored, firstReceiptCreation <= now { found.append(upload(at: firstReceiptCreation, .restore)) }
        if let secondCustomerAt, secondCustomerAt <= now {
            found.append(upload(at: secondCustomerAt, .restore, of: .second))
        }
        var seen: Set<StoreTime> = []
        let last = deletedAt ?? now
        return found.sorted { $0.at < $1.at }.filter { $0.at <= last && seen.insert($0.at).inserted }
    }

    private func upload(at moment: StoreTime, _ reason: UploadReason, of seat: Seat = .first) -> Upload {
        Upload(customer: seat.name(of: index), at: moment, reason: reason, restore: restore(at: moment, of: seat))
    }
}

extension LifeEventKind {
    /// The upload this event causes, when the customer's device has something new to send.
    fileprivate var upload: UploadReason? {
        switch self {
        case .purchased, .trialStarted, .offerStarted, .upgraded, .crossgraded, .seatsAdded: .purchase
        case .resubscribed: .resubscription
        case .renewed, .converted, .recovered, .changedAtRenewal: .renewal
        case .lapsed, .refunded, .refundReversed, .renewalDisabled, .renewalEnabled, .billingFailed, .graceStarted,
            .graceEnded, .crossgradeScheduled, .downgradeScheduled, .changeWithdrawn, .offerRedeemed,
            .priceIncreasePending, .priceIncreaseAccepted, .planSwitchScheduled, .seatsReduced, .seatsRefunded,
            .revoked, .extended, .accountDeleted:
            nil
        }
    }
}
