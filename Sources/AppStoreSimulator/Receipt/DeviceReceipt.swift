import Foundation

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

/// The receipts the store writes, in Base64.
extension World {
    /// Returns the first receipt of the customer's device.
    func receipt(of account: Account) -> String {
        receipt(of: account, creation: account.firstReceiptCreation, restore: account.script.hasRestored ? 1 : 0)
    }

    /// Returns the newest receipt of an account: the `latest_receipt` of an answer.
    func latestReceipt(of account: Account) -> String {
        receipt(of: account, creation: account.newestReceiptCreation, restore: account.script.hasRestored ? 1 : 0)
    }

    /// Returns a receipt of the account's device, written at an instant. `restore` counts restores; each has its own
    /// ids.
    func receipt(of account: Account, creation: StoreTime, restore: Int, _ kind: DeviceReceipt = .dated) -> String {
        var identity = ReceiptIdentity(
            customer: account.index, creation: creation, environment: account.environment, restore: restore)
        identity.isForeign = kind == .foreign
        identity.isDisguised = kind == .disguised
        if account.script.sendsLegacyReceipts || kind == .undated, let life = account.begun.first,
            let period = life.periods.last(where: { $0.bookedAt <= creation })
        {
            identity.form = .legacy
            let bytes = codec.encodeLegacy(identity, period: period, life: life, bundleID: bundleID)
            return Data(bytes).base64EncodedString()
        }
        let payload = ReceiptPayload(bundleID: bundleID(of: identity), account: account, identity: identity)
        return Data(codec.encode(identity) { payload.write(to: &$0) }).base64EncodedString()
    }

    /// Returns the app that a receipt names: for a foreign one another app than the store's.
    func bundleID(of identity: ReceiptIdentity) -> String { identity.isForeign ? "\(bundleID).other" : bundleID }
}

extension Seat {
    /// The restore whose ids the receipts of a second customer's device carry.
    static let secondRestore = 2

    /// The restore of a receipt about which nothing else is known.
    var ownRestore: Int { self == .first ? 0 : Self.secondRestore }
}

/// One receipt that a device sent to the app's server.
struct DeviceUpload: Sendable {
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

extension Account {
    /// Returns the restore whose ids a receipt of a customer's device carries; 0 is none.
    func restore(at creation: StoreTime, of seat: Seat = .first) -> Int {
        switch seat {
        case .first: script.hasRestored && creation >= firstReceiptCreation ? 1 : 0
        case .second: seat.ownRestore
        }
    }

    /// The uploads of the devices until now, in order; at most one receipt per instant.
    var uploads: [DeviceUpload] {
        var found: [DeviceUpload] = []
        for life in begun {
            for lifeEvent in life.lifeEvents {
                guard let reason = lifeEvent.kind.upload, reason != .renewal || script.sendsRenewals else { continue }
                let seat = lifeEvent.ordinal.map { life.periods[$0].buyer.seat } ?? .first
                found.append(upload(at: lifeEvent.at, reason, of: seat))
            }
        }
        for purchase in bought { found.append(upload(at: purchase.bookedAt, .purchase, of: purchase.buyer.seat)) }
        if script.hasRestored, firstReceiptCreation <= now { found.append(upload(at: firstReceiptCreation, .restore)) }
        if let secondCustomerAt, secondCustomerAt <= now {
            found.append(upload(at: secondCustomerAt, .restore, of: .second))
        }
        var seen: Set<StoreTime> = []
        let last = deletedAt ?? now
        return found.sorted { $0.at < $1.at }.filter { $0.at <= last && seen.insert($0.at).inserted }
    }

    private func upload(at moment: StoreTime, _ reason: UploadReason, of seat: Seat = .first) -> DeviceUpload {
        DeviceUpload(customer: seat.name(of: index), at: moment, reason: reason, restore: restore(at: moment, of: seat))
    }
}

extension LifeEventKind {
    /// The upload that this event causes. A renewal is what the store charged by itself.
    var upload: UploadReason? {
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

/// A receipt that a device sent to the app's server.
package struct SimulatedUpload: Codable, Sendable {
    /// The bundle id of the app.
    package var app: String
    /// The app's own user id; `c000017b` is a second customer on the Apple account of `c000017`.
    package var customer: String
    package var environment: StoreEnvironment
    package var receipt: String
    /// The time of the upload, in milliseconds since 1970.
    package var at: Int64
    package var reason: UploadReason

    enum CodingKeys: String, CodingKey {
        case app, customer, environment, receipt, reason
        case at = "at_ms"
    }
}

extension SimulatedUpload {
    init(_ upload: DeviceUpload, of account: Account, in world: World) {
        app = world.bundleID
        customer = upload.customer
        environment = account.environment
        receipt = world.receipt(of: account, creation: upload.at, restore: upload.restore)
        at = upload.at.milliseconds
        reason = upload.reason
    }
}
