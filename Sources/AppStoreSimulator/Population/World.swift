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

    /// Creates a customer by hand, with the next index.
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

    /// Returns the response for a genuine receipt, kept with its account or rendered now; nil when the account is gone.
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

    /// Renders verifyReceipt's answer about an account.
    private func rendered(_ account: Account, _ identity: ReceiptIdentity, _ excludesOld: Bool) -> RenderedAnswer {
        let body = AnswerBody(world: self, account: account, identity: identity, excludesOldTransactions: excludesOld)
        return switch identity.form {
        case .legacy: body.renderedLegacy()
        case .unified: body.rendered()
        }
    }

    /// Returns whether there is an account with an index by now.
    private func exists(_ index: Int, at now: StoreTime) -> Bool {
        guard index < population.firstArrival else {
            return index - population.firstArrival < population.arrivals(at: now)
        }
        return index >= 0 && index < population.count + newcomers.withLock { $0.count }
    }

    /// Returns an account as it began.
    private func made(_ index: Int) -> Account {
        guard index >= population.count, index < population.firstArrival else { return population.account(index) }
        return newcomers.withLock { $0[index - population.count] }
    }

    private func shard(of index: Int) -> Shard { shards[index % Self.shardCount] }
}

/// The tokens that the app passes with purchases.
extension World {
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

/// The two stores that Apple runs. Their ids and receipts never mix.
package enum StoreEnvironment: String, CaseIterable, Codable, Sendable {
    /// The real store.
    case production = "Production"
    /// The testers' store.
    case sandbox = "Sandbox"

    /// Apple's `receipt_type`.
    var receiptType: String { self == .production ? "Production" : "ProductionSandbox" }
}
