import Foundation
import Synchronization

/// The mutable state of the running store: the customers read so far, those created manually, and the secret.
final class World: Sendable {
    private static let shardCount = 64

    let bundleID: String
    let population: Population
    let codec: ReceiptCodec
    let knownReceipts: KnownReceipts
    private let secretBytes: Mutex<[UInt8]>
    private let shards: [Shard]
    /// The manually created customers, as they began.
    private let newcomers = Mutex<[Account]>([])

    init(options: SimulatorOptions, epoch: StoreTime) {
        bundleID = options.bundleID
        population = Population(options, epoch: epoch)
        codec = ReceiptCodec(seed: options.seed)
        knownReceipts = KnownReceipts(codec: codec)
        secretBytes = Mutex(Array(options.sharedSecret.utf8))
        let keptBytesMax = options.keptAnswerBytesMax / Self.shardCount
        shards = (0..<Self.shardCount).map { _ in Shard(keptBytesMax: keptBytesMax) }
    }

    var secret: [UInt8] {
        get { secretBytes.withLock { $0 } }
        set { secretBytes.withLock { $0 = newValue } }
    }

    /// Returns the number of customers now: initial ones, manually created ones and arrivals.
    func customerCount(at now: StoreTime) -> Int {
        population.count + newcomers.withLock { $0.count } + population.arrivals(at: now)
    }

    /// Returns the indices of the customers at these positions: initial ones, manually created ones, then arrivals.
    func indices(_ positions: Range<Int>) -> [Int] {
        let ordinary = population.count + newcomers.withLock { $0.count }
        return positions.map { $0 < ordinary ? $0 : population.firstArrival + $0 - ordinary }
    }

    /// Returns the account, advanced to now; nil when there is no account with this index.
    func account(_ index: Int, at now: StoreTime) -> Account? {
        guard exists(index, at: now) else { return nil }
        return shard(of: index).with(index, at: now, made: { self.made(index) }) { $0.settled() }
    }

    /// Returns the account as it was, or will be without further actions, at an instant; nil before its first purchase.
    func account(_ index: Int, asOf moment: StoreTime) -> Account? {
        guard exists(index, at: moment) else { return nil }
        let manualActions = shard(of: index).with(index, at: population.epoch, made: { self.made(index) }) {
            $0.manualActions
        }
        var account = made(index)
        guard account.start <= moment else { return nil }
        for manualAction in manualActions where manualAction.at <= moment {
            account.advance(to: manualAction.at)
            // The action was accepted then, and the same life accepts it again.
            _ = try? account.apply(manualAction.action)
        }
        account.advance(to: moment)
        return account
    }

    func addCustomer(_ script: CustomerScript, environment: StoreEnvironment, at now: StoreTime) -> Account {
        let index = newcomers.withLock { newcomers in
            let index = population.count + newcomers.count
            newcomers.append(population.account(index, script: script, environment: environment, anchor: now))
            return index
        }
        return shard(of: index).with(index, at: now, made: { self.made(index) }) { $0.settled() }
    }

    /// Applies an action now; returns nil when there is no account with this index.
    func apply(
        _ action: CustomerAction, to index: Int, at now: StoreTime
    ) throws(ActionRefused) -> (outcome: ActionOutcome, account: Account)? {
        guard exists(index, at: now) else { return nil }
        return try shard(of: index).with(index, at: now, made: { self.made(index) }) {
            (resident) throws(ActionRefused) in
            let outcome = try resident.apply(action)
            return (outcome, resident.settled())
        }
    }

    /// Returns the rendered response for a genuine receipt; nil when the account is gone.
    func answer(
        _ identity: ReceiptIdentity, excludesOldTransactions: Bool, at now: StoreTime
    ) -> (answer: RenderedAnswer, now: StoreTime)? {
        guard exists(identity.customer, at: now) else { return nil }
        let key = KnownAccount.AnswerKey(identity: identity, excludesOldTransactions: excludesOldTransactions)
        return shard(of: identity.customer)
            .answer(identity.customer, at: now, for: key, made: { self.made(identity.customer) }) { account in
                self.rendered(account, identity, excludesOldTransactions)
            }
    }

    /// Returns the response of a store that lags behind and shows an earlier instant; nil when the account is gone.
    func answer(
        _ identity: ReceiptIdentity, excludesOldTransactions: Bool, asOf moment: StoreTime, at now: StoreTime
    ) -> RenderedAnswer? {
        guard exists(identity.customer, at: now) else { return nil }
        let start = made(identity.customer).start
        guard let account = account(identity.customer, asOf: max(start, moment)), !account.isDeleted else { return nil }
        return rendered(account, identity, excludesOldTransactions)
    }

    private func rendered(_ account: Account, _ identity: ReceiptIdentity, _ excludesOld: Bool) -> RenderedAnswer {
        let body = AnswerBody(world: self, account: account, identity: identity, excludesOldTransactions: excludesOld)
        return switch identity.form {
        case .legacy: body.renderedLegacy()
        case .unified: body.rendered()
        }
    }

    private func exists(_ index: Int, at now: StoreTime) -> Bool {
        guard index < population.firstArrival else {
            return index - population.firstArrival < population.arrivals(at: now)
        }
        return index >= 0 && index < population.count + newcomers.withLock { $0.count }
    }

    private func made(_ index: Int) -> Account {
        guard index >= population.count, index < population.firstArrival else { return population.account(index) }
        return newcomers.withLock { $0[index - population.count] }
    }

    private func shard(of index: Int) -> Shard { shards[index % Self.shardCount] }
}

/// The receipts the store writes, in Base64.
extension World {
    /// Returns the first receipt of the customer's device.
    func receipt(of account: Account) -> String {
        receipt(of: account, creation: account.firstReceiptCreation, restore: account.script.hasRestored ? 1 : 0)
    }

    func latestReceipt(of account: Account) -> String {
        receipt(of: account, creation: account.newestReceiptCreation, restore: account.script.hasRestored ? 1 : 0)
    }

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

    func bundleID(of identity: ReceiptIdentity) -> String { identity.isForeign ? "\(bundleID).other" : bundleID }

    /// Returns the token the app passes with the first customer's purchases, if it passes one.
    func accountToken(of account: Account) -> String? {
        account.script.hasAccountToken ? account.ids.accountToken(seed: population.seed) : nil
    }

    /// Returns the token in a row that this customer bought: the one of the purchase, else the first customer's own.
    func token(of buyer: Buyer, _ account: Account) -> String? {
        if let token = buyer.token { return token.text }
        return buyer.seat == .first ? accountToken(of: account) : nil
    }
}

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
        for purchase in bought { found.append(upload(at: purchase.bookedAt, .purchase, of: purchase.buyer.seat)) }
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
