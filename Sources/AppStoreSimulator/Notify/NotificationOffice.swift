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
        var queue: [Delivery] = []
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

    /// Returns the number of the next test.
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

    func notification(_ uuid: String) -> MadeNotification? {
        state.withLock { state in state.known[uuid].flatMap { state.made[$0] } }
    }

    /// Takes what is due out of the queue, the earliest first.
    func takeDue(at now: StoreTime) -> [(delivery: Delivery, notification: MadeNotification)] {
        state.withLock { state in
            guard state.queue.contains(where: { $0.dueAt <= now }) else { return [] }
            let due = state.queue.filter { $0.dueAt <= now }.sorted {
                ($0.dueAt, $0.sequence) < ($1.dueAt, $1.sequence)
            }
            state.queue.removeAll { $0.dueAt <= now }
            return due.compactMap { delivery in state.made[delivery.sequence].map { (delivery, $0) } }
        }
    }

    /// Notes how an attempt went, and plans the next one if it failed.
    func note(_ result: SendResult, of delivery: Delivery, at now: StoreTime) {
        state.withLock { state in
            guard let notification = state.made[delivery.sequence], !delivery.isCopy else { return }
            state.made[delivery.sequence]?.attempts.append(MadeNotification.Attempt(at: now, result: result))
            guard result != .success,
                let next = delivery.next(at: now, notification.occasion.environment, scale: scale)
            else { return }
            state.queue.append(next)
        }
    }

    private func make(
        _ occasion: NotificationOccasion, _ number: (UInt64, UInt64), _ options: NotificationOptions,
        in state: inout State
    ) {
        let uuid = String(decoding: HexDigits.uuid(number.0, number.1), as: UTF8.self)
        guard state.known[uuid] == nil else { return }
        let fate = NotificationFate(of: number, options, scale: scale)
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
        state.queue.append(Delivery(sequence: sequence, dueAt: due, attempt: 0))
        guard fate.isDoubled, !fate.isDropped else { return }
        state.queue.append(Delivery(sequence: sequence, dueAt: due + 1, attempt: 0, isCopy: true))
    }

    /// Returns the halves of a version 4 UUID, always the same for an occasion.
    private func uuid(of occasion: NotificationOccasion) -> (UInt64, UInt64) {
        let account = SeededGenerator.mixed(UInt64(bitPattern: Int64(occasion.account ?? -1)))
        var numbers = SeededGenerator(seed: seed ^ 0x4071F1 ^ account, stream: occasion.source.number)
        return (numbers.next() & ~0xF000 | 0x4000, numbers.next() & ~(3 << 62) | 2 << 62)
    }
}
