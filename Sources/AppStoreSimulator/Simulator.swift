import Foundation
import Synchronization

/// A pretend App Store: customers who live by their scripts on the real clock, and a verifyReceipt that tells what
/// became of them. It is written from Apple's documented behaviour alone and shares no code with what it tests.
package final class Simulator: Sendable {
    /// How it was set up.
    package let options: SimulatorOptions
    /// The instant the population is laid out around, in milliseconds since 1970.
    package let epochMilliseconds: Int64
    /// What it shows of itself over HTTPS; nil where it speaks plain HTTP.
    package let identity: StoreIdentity?

    let clock: SimulatorClock
    let world: World
    let troubles: Troubles

    /// Makes a store. Nothing runs by itself: lives move on when somebody looks. With an identity it speaks HTTPS.
    package init(_ options: SimulatorOptions, clock: SimulatorClock = .system, identity: StoreIdentity? = nil) {
        let epoch = options.epochMilliseconds.map { Moment(milliseconds: $0) } ?? clock.now
        self.options = options
        self.identity = identity
        self.clock = clock
        self.epochMilliseconds = epoch.milliseconds
        self.world = World(options: options, epoch: epoch)
        self.troubles = Troubles(seed: options.seed, faults: options.faults)
    }

    /// The instant the lives have reached, which is the epoch when they stand still.
    var now: Moment { options.standsStill ? Moment(milliseconds: epochMilliseconds) : clock.now }

    /// Answers the body of one verifyReceipt call, without HTTP and without faults.
    package func answer(_ body: [UInt8], at environment: StoreEnvironment) -> [UInt8] {
        let (answer, requestedAt) = finishedAnswer(body, at: environment)
        return answer.bytes(requestedAt: requestedAt)
    }

    /// The answer and the instant that belongs in its gap.
    func finishedAnswer(
        _ body: [UInt8], at environment: StoreEnvironment
    ) -> (answer: RenderedAnswer, requestedAt: Moment) {
        let now = clock.now
        func refused(_ check: StatusCheck) -> (answer: RenderedAnswer, requestedAt: Moment) {
            (RenderedAnswer(whole: check.errorBody(at: environment)), now)
        }
        guard let request = VerifyRequest(body) else { return refused(.unreadableRequest) }
        guard let receipt = request.receiptData, !receipt.isEmpty else {
            return refused(.malformedReceipt(isException: false))
        }
        let check = StatusCheck(
            world.knownReceipts.read(receipt), of: receipt, password: request.password, at: environment,
            secret: world.secret)
        guard case .genuine(let identity) = check else { return refused(check) }
        let found = world.answer(
            identity, excludesOldTransactions: request.excludesOldTransactions, at: options.standsStill ? self.now : now
        )
        guard let found else { return refused(.accountGone) }
        // Another call may have moved this life on since the clock was read; its time is the later one.
        return (found.answer, max(now, found.now))
    }
}
