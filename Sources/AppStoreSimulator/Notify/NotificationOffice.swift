import Foundation
import NIOCore
import NIOPosix
import Synchronization

/// What the store made of its customers' lives to notify about, and what is to be sent.
final class NotificationOffice: Sendable {
    /// The most notifications that are remembered; the oldest are forgotten.
    static let keptMax = 200_000
    /// A life may record an event a little after its instant.
    private static let slack: Int64 = 5000

    private struct State: Sendable {
        var options: NotificationOptions?
        var startedAt = StoreTime(milliseconds: 0)
        var collectedUntil = StoreTime(milliseconds: 0)
        var made: [Int: MadeNotification] = [:]
        var first = 0
        var next = 0
        var known: [String: Int] = [:]
        var queue: [NotificationDelivery] = []
        var testCount = 0
    }

    private let seed: UInt64
    private let scale: TimeScale
    private let state = Mutex(State())

    init(seed: UInt64, scale: TimeScale) {
        self.seed = seed
        self.scale = scale
    }

    var options: NotificationOptions? { state.withLock { $0.options } }

    /// Starts to notify about what happens from the second of `now` on, or changes the address.
    func start(_ options: NotificationOptions, at now: StoreTime) {
        state.withLock { state in
            if state.options == nil { (state.startedAt, state.collectedUntil) = (now.wholeSecond, now) }
            state.options = options
        }
    }

    /// Makes and sends no more notifications.
    func stop() { state.withLock { ($0.options, $0.queue) = (nil, []) } }

    /// Returns the instant from which on accounts must be looked at; nil where nothing is notified.
    var collectsSince: StoreTime? {
        state.withLock { state in
            state.options == nil ? nil : max(state.startedAt, state.collectedUntil - Self.slack)
        }
    }

    /// Makes notifications of what is new among these, in the order in which it happened.
    func add(_ occasions: [NotificationOccasion], until moment: StoreTime) {
        let sorted = occasions.map { (uuid: uuid(of: $0), occasion: $0) }.sorted { left, right in
            (left.occasion.at, left.uuid.0, left.uuid.1) < (right.occasion.at, right.uuid.0, right.uuid.1)
        }
        state.withLock { state in
            guard let options = state.options else { return }
            for (number, occasion) in sorted { make(occasion, number, options, in: &state) }
            state.collectedUntil = max(state.collectedUntil, moment)
        }
    }

    /// Returns the number of the next test notification.
    func nextTest() -> Int {
        state.withLock { state in
            state.testCount += 1
            return state.testCount
        }
    }

    /// Returns what is remembered, in the order in which it was made, from a sequence number on.
    func made(from sequence: Int = 0) -> [MadeNotification] {
        state.withLock { state in (max(sequence, state.first)..<max(sequence, state.next)).compactMap { state.made[$0] }
        }
    }

    /// Returns the remembered notification with a UUID.
    func notification(_ uuid: String) -> MadeNotification? {
        state.withLock { state in state.known[uuid].flatMap { state.made[$0] } }
    }

    /// Takes what is due out of the queue, the earliest first.
    func takeDue(at now: StoreTime) -> [(delivery: NotificationDelivery, notification: MadeNotification)] {
        state.withLock { state in
            let due = state.queue.filter { $0.dueAt <= now }
                .sorted { ($0.dueAt, $0.sequence) < ($1.dueAt, $1.sequence) }
            state.queue.removeAll { $0.dueAt <= now }
            return due.compactMap { delivery in state.made[delivery.sequence].map { (delivery, $0) } }
        }
    }

    /// Notes how an attempt went, and plans the next one if it failed.
    func note(_ result: SendResult, of delivery: NotificationDelivery, at now: StoreTime) {
        state.withLock { state in
            guard let notification = state.made[delivery.sequence], !delivery.isCopy else { return }
            state.made[delivery.sequence]?.attempts.append((at: now, result: result))
            guard result != .success,
                let next = delivery.next(at: now, notification.occasion.environment, scale: scale)
            else { return }
            state.queue.append(next)
        }
    }

    /// Makes the notification of an occasion that is new, and queues its first attempt.
    private func make(
        _ occasion: NotificationOccasion, _ number: (UInt64, UInt64), _ options: NotificationOptions,
        in state: inout State
    ) {
        let uuid = UUID.text(number.0, number.1)
        guard state.known[uuid] == nil else { return }
        let fate = fate(of: number, options)
        let sequence = state.next
        state.made[sequence] = MadeNotification(
            sequence: sequence, uuid: uuid, occasion: occasion, isDropped: fate.isDropped)
        state.known[uuid] = sequence
        state.next += 1
        if state.made.count > Self.keptMax {
            if let forgotten = state.made.removeValue(forKey: state.first) { state.known[forgotten.uuid] = nil }
            state.first += 1
        }
        guard options.version == .second || occasion.name.firstVersion != nil else { return }
        let due = occasion.at + fate.delay
        state.queue.append(NotificationDelivery(sequence: sequence, dueAt: due, attempt: 0))
        guard fate.isDoubled, !fate.isDropped else { return }
        state.queue.append(NotificationDelivery(sequence: sequence, dueAt: due + 1, attempt: 0, isCopy: true))
    }

    /// Draws what happens to a notification, and the milliseconds before its first attempt.
    private func fate(
        of uuid: (UInt64, UInt64), _ options: NotificationOptions
    ) -> (isDropped: Bool, isDoubled: Bool, delay: Int64) {
        var numbers = SeededGenerator(seed: uuid.0, stream: uuid.1)
        let (drop, double, order) = (numbers.unit(), numbers.unit(), numbers.unit())
        let wait = options.delaySeconds * 1000 * numbers.unit()
        let behind = order < options.shareReordered ? scale.monthMilliseconds * numbers.between(0.02, 0.15) : 0
        return (drop < options.shareDropped, double < options.shareDoubled, Int64(wait + behind))
    }

    /// Returns the halves of a version 4 UUID, always the same for an occasion.
    private func uuid(of occasion: NotificationOccasion) -> (UInt64, UInt64) {
        let account = SeededGenerator.mixed(UInt64(bitPattern: Int64(occasion.account ?? -1)))
        var numbers = SeededGenerator(seed: seed ^ 0x4071F1 ^ account, stream: occasion.source.number)
        return (numbers.next() & ~0xF000 | 0x4000, numbers.next() & ~(3 << 62) | 2 << 62)
    }
}

/// Posts notifications, each on a connection of its own.
struct NotificationCourier: Sendable {
    /// Apple does not wait long for an answer.
    private static let answerSecondsMax: Int64 = 5
    private static let connectSecondsMax: Int64 = 2

    let group: MultiThreadedEventLoopGroup

    /// Posts a body and returns how it went. It throws nothing: a failure is a result too.
    func post(_ body: [UInt8], to address: NotificationAddress) async -> SendResult {
        let loop = group.next()
        let result = loop.makePromise(of: SendResult.self)
        let timeout = loop.scheduleTask(in: .seconds(Self.answerSecondsMax)) { result.succeed(.timedOut) }
        defer { timeout.cancel() }
        let channel: any Channel
        do {
            channel = try await ClientBootstrap(group: loop)
                .connectTimeout(.seconds(Self.connectSecondsMax))
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(StatusReader(result))
                    }
                }
                .connect(host: address.host, port: address.port).get()
            var bytes = ByteBuffer()
            bytes.writeString(
                "POST \(address.path) HTTP/1.1\r\nHost: \(address.host):\(address.port)\r\n"
                    + "Content-Type: application/json\r\nContent-Length: \(body.count)\r\nConnection: close\r\n\r\n")
            bytes.writeBytes(body)
            channel.writeAndFlush(bytes, promise: nil)
        } catch {
            result.succeed(.socketIssue)
            return .socketIssue
        }
        defer { channel.close(promise: nil) }
        do {
            return try await result.futureResult.get()
        } catch {
            return .noResponse
        }
    }
}

/// Reads the status of the response to a posted notification and ignores the rest, as Apple does.
private final class StatusReader: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let result: EventLoopPromise<SendResult>
    private var bytes = ByteBuffer()

    init(_ result: EventLoopPromise<SendResult>) { self.result = result }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        bytes.writeImmutableBuffer(unwrapInboundIn(data))
        guard let end = bytes.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) else { return }
        let words = bytes.readableBytesView[..<end].split(separator: UInt8(ascii: " "))
        let status = words.count > 1 ? Int(String(decoding: words[1], as: UTF8.self)) : nil
        result.succeed(status.map { (200...206).contains($0) ? .success : .otherStatus } ?? .invalidResponse)
    }

    func channelInactive(context: ChannelHandlerContext) {
        result.succeed(bytes.readableBytes == 0 ? .noResponse : .prematureClose)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        result.succeed(.socketIssue)
        context.close(promise: nil)
    }
}

/// What a notification is about. It is enough to write the notification again at any time.
enum NotificationSource: Sendable, Hashable {
    /// An event of a subscription of an account, by their numbers.
    case event(subscription: Int, number: Int)
    /// A one-time purchase, by its number.
    case charge(Int)
    case refund(purchase: Int, number: Int)
    case reversal(purchase: Int, number: Int)
    /// A request for a refund, by its number.
    case request(Int)
    case decline(Int)
    /// A test, by its number.
    case test(Int)
    /// The summary of an extension for all, by its key.
    case summary(String)
    /// A subscription that an extension for all left out.
    case failure(subscription: Int, key: String)

    /// A number that differs for different sources, the same in every process.
    var number: UInt64 {
        switch self {
        case .event(let subscription, let number): Self.mixed(1, subscription, number)
        case .charge(let purchase): Self.mixed(2, purchase, 0)
        case .refund(let purchase, let number): Self.mixed(3, purchase, number)
        case .reversal(let purchase, let number): Self.mixed(4, purchase, number)
        case .request(let number): Self.mixed(5, number, 0)
        case .decline(let number): Self.mixed(6, number, 0)
        case .test(let number): Self.mixed(7, number, 0)
        case .summary(let key): Self.mixed(8, Self.number(of: key), 0)
        case .failure(let subscription, let key): Self.mixed(9, Self.number(of: key), subscription)
        }
    }

    private static func mixed(_ kind: UInt64, _ first: Int, _ second: Int) -> UInt64 {
        let once = SeededGenerator.mixed(kind &+ UInt64(bitPattern: Int64(first)) &* 0x9E37_79B9_7F4A_7C15)
        return SeededGenerator.mixed(once &+ UInt64(bitPattern: Int64(second)))
    }

    private static func number(of key: String) -> Int {
        key.utf8.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xFFFF_FFFF }
    }
}

/// Something that Apple notifies about.
struct NotificationOccasion: Sendable {
    let source: NotificationSource
    let name: NotificationName
    /// When it happened, which is the date of the signature.
    let at: StoreTime
    let environment: StoreEnvironment
    /// The account; nil for tests and summaries.
    var account: Int?
    var transactionID: String?
    var originalTransactionID: String?
}

extension Account {
    /// Returns what Apple notifies about from an instant on, in no particular order.
    func occasions(since start: StoreTime) -> [NotificationOccasion] {
        begun.indices.flatMap { events(of: lives[$0], number: $0, since: start) }
            + purchases.purchases.flatMap { events(of: $0, since: start) } + requests(since: start)
    }

    /// Returns what Apple notifies about a subscription.
    private func events(of life: Life, number: Int, since start: StoreTime) -> [NotificationOccasion] {
        // Events are in the order of time, and only the newest are wanted.
        let first = life.lifeEvents.lastIndex { $0.at < start }.map { $0 + 1 } ?? 0
        return life.lifeEvents.indices[first...].compactMap { place in
            let happened = life.lifeEvents[place]
            guard let name = NotificationName(happened, of: life) else { return nil }
            return occasion(
                .event(subscription: number, number: place), name, at: happened.at,
                happened.ordinal.map { life.ids.transactionID(of: $0) }, of: life.ids.originalTransactionID)
        }
    }

    /// Returns what Apple notifies about a one-time purchase.
    private func events(of bought: OneTimePurchase, since start: StoreTime) -> [NotificationOccasion] {
        let id = ids.purchase(bought.ordinal)
        func happened(_ source: NotificationSource, _ type: String, _ at: StoreTime?) -> [NotificationOccasion] {
            guard let at, (start...max(start, now)).contains(at) else { return [] }
            return [occasion(source, NotificationName(type), at: at, id, of: id)]
        }
        return happened(.charge(bought.ordinal), "ONE_TIME_CHARGE", bought.bookedAt)
            + bought.refunds.enumerated().flatMap { number, refund in
                happened(.refund(purchase: bought.ordinal, number: number), "REFUND", refund.at)
                    + happened(
                        .reversal(purchase: bought.ordinal, number: number), "REFUND_REVERSED", refund.reversedAt)
            }
    }

    /// Returns what Apple notifies about requests for refunds.
    private func requests(since start: StoreTime) -> [NotificationOccasion] {
        refundRequests.enumerated().flatMap { number, request in
            let (id, original) = (request.transactionID, originalTransactionID(of: request.transactionID))
            let asked = occasion(
                .request(number), NotificationName("CONSUMPTION_REQUEST"), at: request.at, id, of: original)
            let declined = request.declinedAt.map {
                occasion(.decline(number), NotificationName("REFUND_DECLINED"), at: $0, id, of: original)
            }
            return [asked, declined].compactMap(\.self).filter { $0.at >= start }
        }
    }

    /// Returns an occasion about a transaction of the account, and its subscription or purchase.
    func occasion(
        _ source: NotificationSource, _ name: NotificationName, at moment: StoreTime, _ transactionID: String?,
        of originalID: String?
    ) -> NotificationOccasion {
        NotificationOccasion(
            source: source, name: name, at: moment, environment: environment, account: index,
            transactionID: transactionID, originalTransactionID: originalID)
    }

    /// Returns the id of the subscription or purchase to which a transaction belongs.
    private func originalTransactionID(of id: String) -> String? {
        if let place = period(id) { return lives[place.subscription].ids.originalTransactionID }
        return purchaseNumber(of: id).map { ids.purchase($0) }
    }
}
