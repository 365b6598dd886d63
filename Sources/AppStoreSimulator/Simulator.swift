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
    let conditions: StoreConditions
    let offerKeys = RegisteredKeys()
    let signatory: Signatory
    let serverKeys = RegisteredKeys()
    let serverRates = ServerRates()
    let serverConditions: StoreConditions
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
        self.conditions = StoreConditions(seed: options.seed, faults: options.faults)
        self.serverConditions = StoreConditions(seed: options.seed &+ 1)
        if let wanted = options.notifications { notify(wanted) }
    }

    /// The instant the lives have reached; the epoch when they stand still.
    var now: StoreTime { options.standsStill ? StoreTime(milliseconds: epochMilliseconds) : clock.now }
}

/// The accounts of the store, by name, by index and by position.
extension Simulator {
    /// Returns the accounts from position `from` on, at most `count`, in order.
    func accounts(from: Int = 0, count: Int = .max) -> [Account] {
        let now = now
        return indices(from: from, count: count, at: now).compactMap { world.account($0, at: now) }
    }

    /// Returns the account that a customer's name names, now; nil when there is no such customer.
    func account(of customer: String) -> Account? {
        CustomerName.index(of: customer).flatMap { world.account($0, at: now) }
    }

    /// Returns an account by its index, now or at an instant in milliseconds since 1970.
    func account(_ index: Int, at milliseconds: Int64?) -> Account? {
        guard let milliseconds else { return world.account(index, at: now) }
        return world.account(index, asOf: StoreTime(milliseconds: milliseconds))
    }

    /// Returns the indices of the accounts from position `from` on, at most `count`, of those that exist at an instant.
    func indices(from: Int, count: Int, at moment: StoreTime) -> [Int] {
        let end = world.customerCount(at: moment)
        let start = min(max(0, from), end)
        return world.indices(start..<(start + min(max(0, count), end - start)))
    }
}
