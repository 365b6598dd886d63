import Foundation
import Synchronization

/// A simulated App Store: customers who live by their scripts on the real clock, and a verifyReceipt that reports their
/// state. It follows only Apple's documented behaviour and shares no code with the program it tests.
package final class Simulator: Sendable {
    package let options: SimulatorOptions
    /// The instant around which the population is laid out, in milliseconds since 1970.
    package let epochMilliseconds: Int64
    /// The certificates it shows over HTTPS; nil when it uses plain HTTP.
    package let identity: StoreIdentity?
    /// The store of another app at the same address; nil where this one is alone.
    let neighbour: Simulator?

    let clock: SimulatorClock
    /// By which the tokens and the rates of callers count.
    let callClock: SimulatorClock
    let world: World
    let conditions: Conditions
    let offerKeys = RegisteredKeys()
    let signatory: Signatory
    let serverKeys = RegisteredKeys()
    let serverRates = ServerRates()
    let serverConditions: Conditions
    let support = Mutex(SupportBook())
    /// Held while an extension is looked up, made and noted, so that equal requests at once make one.
    let extensionTurn = Mutex(())
    let notifications: NotificationOffice

    /// Creates a store. Nothing runs by itself: lives advance when they are read. With an identity it uses HTTPS. With
    /// a neighbour it hands on what is not its own: receipts that it did not write, and control calls that name the
    /// neighbour's app. A clock of calls goes on where the one of the lives is stopped.
    package init(
        _ options: SimulatorOptions, clock: SimulatorClock = .system, callClock: SimulatorClock? = nil,
        identity: StoreIdentity? = nil, signatory: Signatory = Signatory(), beside neighbour: Simulator? = nil
    ) {
        let epoch = options.epochMilliseconds.map { StoreTime(milliseconds: $0) } ?? clock.now
        self.options = options
        self.identity = identity
        self.signatory = signatory
        self.neighbour = neighbour
        self.clock = clock
        self.callClock = callClock ?? clock
        self.epochMilliseconds = epoch.milliseconds
        self.world = World(options: options, epoch: epoch)
        self.notifications = NotificationOffice(
            seed: options.seed, scale: TimeScale(monthSeconds: options.monthSeconds))
        self.conditions = Conditions(seed: options.seed, faults: options.faults)
        self.serverConditions = Conditions(seed: options.seed &+ 1)
        if let wanted = options.notifications { notify(wanted) }
    }

    /// The instant the lives have reached; the epoch when they stand still.
    var now: StoreTime { options.standsStill ? StoreTime(milliseconds: epochMilliseconds) : clock.now }

    /// Answers the body of one verifyReceipt call, without HTTP and without faults.
    package func answer(_ body: [UInt8], at environment: StoreEnvironment) -> [UInt8] {
        let (answer, requestedAt) = finishedAnswer(body, at: environment)
        return answer.bytes(requestedAt: requestedAt)
    }

    /// Returns the response and the instant for its gap.
    func finishedAnswer(
        _ body: [UInt8], at environment: StoreEnvironment
    ) -> (answer: RenderedAnswer, requestedAt: StoreTime) {
        let now = clock.now
        func refused(_ check: StatusCheck) -> (answer: RenderedAnswer, requestedAt: StoreTime) {
            (RenderedAnswer(whole: check.errorBody(at: environment)), now)
        }
        guard let request = VerifyRequest(body) else { return refused(.unreadableRequest) }
        guard let receipt = request.receiptData, !receipt.isEmpty else {
            return refused(.malformedReceipt(isException: false))
        }
        let reading = world.knownReceipts.read(receipt)
        if let neighbour, reading == .forged { return neighbour.finishedAnswer(body, at: environment) }
        let check = StatusCheck(reading, of: receipt, password: request.password, at: environment, secret: world.secret)
        guard case .genuine(let identity) = check else { return refused(check) }
        let lag = conditions.lag(of: identity.customer)
        guard lag == 0 else {
            let answer = world.answer(
                identity, excludesOldTransactions: request.excludesOldTransactions, asOf: self.now - lag, at: self.now)
            return answer.map { ($0, now) } ?? refused(.accountGone)
        }
        let found = world.answer(
            identity, excludesOldTransactions: request.excludesOldTransactions, at: options.standsStill ? self.now : now
        )
        guard let found else { return refused(.accountGone) }
        // Another call may have advanced this life after the clock was read; its time is the later one.
        return (found.answer, max(now, found.now))
    }
}

extension Simulator {
    package var sharedSecret: String { String(decoding: world.secret, as: UTF8.self) }

    /// Rotates the secret: from now on only this one is valid.
    package func rotateSecret(to secret: String) { world.secret = Array(secret.utf8) }

    /// The number of verifyReceipt calls over HTTP.
    package var callCount: Int { conditions.calls }

    /// The number of customers in both environments, including created ones and arrivals.
    package var customerCount: Int { world.customerCount(at: now) }

    /// Creates a customer who buys now, or as many periods ago as the script says.
    package func createCustomer(
        _ script: CustomerScript, environment: StoreEnvironment = .production
    ) -> SimulatedCustomer {
        SimulatedCustomer(world.addCustomer(script, environment: environment, at: now), in: world)
    }

    /// Applies an action now. Returns false when there is no such customer; throws when the action is invalid.
    package func act(_ action: CustomerAction, on customer: String) throws(ActionRefused) -> Bool {
        try perform(action, on: customer) != nil
    }

    /// Applies an action now and returns what it made; nil without such a customer. Throws when the action is invalid.
    package func perform(_ action: CustomerAction, on customer: String) throws(ActionRefused) -> ActionAnswer? {
        guard let index = CustomerName.index(of: customer) else { return nil }
        var action = action
        action.seat = Seat(of: customer)
        try checkSignature(of: action, on: index)
        return try world.apply(action, to: index, at: now).map { ActionAnswer($0.outcome, of: $0.account, in: world) }
    }

    /// Returns the first receipts of the customers' devices from position `from` on, at most `count`, in order.
    package func receipts(from: Int = 0, count: Int = .max) -> [SimulatedCustomer] {
        accounts(from: from, count: count).map { SimulatedCustomer($0, in: world) }
    }

    /// Returns the uploads of the devices after `since` and until `until` (now unless given), in milliseconds since
    /// 1970, in order: a receipt with every purchase, return and restore, and with renewals where the app sends them.
    package func uploads(since: Int64 = .min, until: Int64? = nil) -> [SimulatedUpload] {
        let now = until.map { min(StoreTime(milliseconds: $0), self.now) } ?? self.now
        let found = indices(from: 0, count: .max, at: now).flatMap { index -> [SimulatedUpload] in
            guard let account = world.account(index, asOf: now) else { return [] }
            return account.uploads.filter { $0.at.milliseconds > since }
                .map { SimulatedUpload($0, of: account, in: world) }
        }
        return found.sorted { ($0.at, $0.customer) < ($1.at, $1.customer) }
    }

    /// Returns the receipt the store would write now for this customer; nil when there is no such customer.
    package func latestReceipt(of customer: String) -> String? {
        account(of: customer).map { world.latestReceipt(of: $0) }
    }

    /// Returns a receipt that a device of this customer may still have, written at an instant in milliseconds since
    /// 1970 (at the earliest at the first purchase, at the latest now). `restore` counts restores, from 0 to 4; the
    /// rows of each have their own ids. Nil when there is no such customer.
    package func receipt(
        of customer: String, writtenAt milliseconds: Int64, restore: Int = 0, _ kind: DeviceReceipt = .dated
    ) -> String? {
        account(of: customer).map { account in
            let creation = min(max(StoreTime(milliseconds: milliseconds), account.start), now)
            let restore = min(max(restore, 0), SubscriptionIDs.restoresMax)
            return world.receipt(of: account, creation: creation, restore: restore, kind)
        }
    }

    /// Returns the store's data about one customer, now or at an instant in milliseconds since 1970; nil without one.
    package func truth(of customer: String, at milliseconds: Int64? = nil) -> CustomerTruth? {
        CustomerName.index(of: customer).flatMap { account($0, at: milliseconds) }
            .map { CustomerTruth($0, in: world) }
    }

    /// Returns the store's data about the customers from position `from` on, at most `count`, in order: now, or at an
    /// instant in milliseconds since 1970. For a future instant it assumes no manual actions.
    package func truth(at milliseconds: Int64? = nil, from: Int = 0, count: Int = .max) -> [CustomerTruth] {
        let moment = milliseconds.map { StoreTime(milliseconds: $0) } ?? now
        return indices(from: from, count: count, at: moment).compactMap { index in
            account(index, at: milliseconds).map { CustomerTruth($0, in: world) }
        }
    }

    /// Returns the accounts from position `from` on, at most `count`, in order.
    func accounts(from: Int = 0, count: Int = .max) -> [Account] {
        let now = now
        return indices(from: from, count: count, at: now).compactMap { world.account($0, at: now) }
    }

    /// Returns the account of a customer now; nil when there is no such customer.
    func account(of customer: String) -> Account? {
        CustomerName.index(of: customer).flatMap { world.account($0, at: now) }
    }

    private func account(_ index: Int, at milliseconds: Int64?) -> Account? {
        guard let milliseconds else { return world.account(index, at: now) }
        return world.account(index, asOf: StoreTime(milliseconds: milliseconds))
    }

    private func indices(from: Int, count: Int, at moment: StoreTime) -> [Int] {
        let end = world.customerCount(at: moment)
        let start = min(max(0, from), end)
        return world.indices(start..<(start + min(max(0, count), end - start)))
    }
}
