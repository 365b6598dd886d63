import Foundation
import Synchronization

/// A simulated App Store: customers who live by their scripts on the real clock, and a verifyReceipt that reports their
/// state. It follows only Apple's documented behaviour and shares no code with the program it tests.
package final class Simulator: Sendable {
    /// The configuration.
    package let options: SimulatorOptions
    /// The instant around which the population is laid out, in milliseconds since 1970.
    package let epochMilliseconds: Int64
    /// The certificates it shows over HTTPS; nil when it uses plain HTTP.
    package let identity: StoreIdentity?
    /// The store of another app at the same address; nil where this one is alone.
    let neighbour: Simulator?

    let clock: SimulatorClock
    let world: World
    let conditions: Troubles
    let lags: Lags
    let offerKeys = RegisteredKeys()
    let signatory: Signatory
    let serverKeys = RegisteredKeys()
    let serverRates = ServerRates()
    let serverConditions: Troubles
    let serverLags: Lags
    let support = SupportBook()
    let notifications: NotificationOffice

    /// Creates a store. Nothing runs by itself: lives advance when they are read. With an identity it uses HTTPS. With
    /// a neighbour it hands on what is not its own: receipts that it did not write, and control calls that name the
    /// neighbour's app.
    package init(
        _ options: SimulatorOptions, clock: SimulatorClock = .system, identity: StoreIdentity? = nil,
        signatory: Signatory = Signatory(), beside neighbour: Simulator? = nil
    ) {
        let epoch = options.epochMilliseconds.map { StoreTime(milliseconds: $0) } ?? clock.now
        self.options = options
        self.identity = identity
        self.signatory = signatory
        self.neighbour = neighbour
        self.clock = clock
        self.epochMilliseconds = epoch.milliseconds
        self.world = World(options: options, epoch: epoch)
        self.notifications = NotificationOffice(
            seed: options.seed, scale: TimeScale(monthSeconds: options.monthSeconds))
        self.conditions = Troubles(seed: options.seed, faults: options.faults)
        self.lags = Lags(seed: options.seed)
        self.serverConditions = Troubles(seed: options.seed &+ 1, faults: [])
        self.serverLags = Lags(seed: options.seed &+ 1)
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
        let check = StatusCheck(
            reading, of: receipt, password: request.password, at: environment, secret: world.secret)
        guard case .genuine(let identity) = check else { return refused(check) }
        let lag = lags.milliseconds(of: identity.customer)
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
