import Foundation
import Synchronization

/// A pretend App Store: customers who live by their scripts on the real clock, and a verifyReceipt that tells what
/// became of them. It is written from Apple's documented behaviour alone and shares no code with what it tests.
public final class Simulator: Sendable {
    /// How it was set up.
    public let options: SimulatorOptions
    /// The instant the population is laid out around, in milliseconds since 1970.
    public let epochMilliseconds: Int64

    let clock: SimulatorClock
    let world: Mutex<World>

    /// Makes a store. Nothing runs by itself: lives move on when somebody looks.
    public init(_ options: SimulatorOptions, clock: SimulatorClock = .system) {
        let epoch = options.epochMilliseconds.map { Moment(milliseconds: $0) } ?? clock.now
        self.options = options
        self.clock = clock
        self.epochMilliseconds = epoch.milliseconds
        self.world = Mutex(World(options: options, epoch: epoch))
    }

    /// Answers the body of one verifyReceipt call, without HTTP and without faults.
    public func answer(_ body: [UInt8], at environment: StoreEnvironment) -> [UInt8] {
        let request: VerifyRequest
        do {
            request = try JSONDecoder().decode(VerifyRequest.self, from: Data(body))
        } catch {
            return StatusCheck.unreadableRequest.errorBody(at: environment)
        }
        let now = clock.now
        let found = world.withLock { world -> (check: StatusCheck, body: AnswerBody?) in
            let check = StatusCheck(request, at: environment, codec: world.codec, secret: world.secret)
            guard case .genuine(let identity) = check else { return (check, nil) }
            guard let customer = world.customer(identity.customer, at: now), !customer.life.accountIsDeleted,
                customer.environment == environment
            else { return (.accountGone, nil) }
            // Another call may have moved this life on since the clock was read; its time is the later one.
            return (
                check,
                AnswerBody(
                    bundleID: world.bundleID, customer: customer, creation: identity.creation,
                    request: customer.life.now,
                    latestReceipt: world.latestReceipt(of: customer),
                    excludesOldTransactions: request.excludesOldTransactions)
            )
        }
        return found.body?.bytes ?? found.check.errorBody(at: environment)
    }
}
