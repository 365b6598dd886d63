import Ledger
import Logging

/// How long webhooks wait after failures.
package struct WebhookPace: Sendable {
    /// After the first, second … failed call about an event; the last one goes on for ever.
    static let retrySeconds: [Double] = [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]
    /// The first, second … rest of a webhook; the last one goes on.
    static let restSeconds: [Double] = [5, 15, 60, 300, 900]
    /// The failures in a row, and the streams that they are of, after which a webhook rests.
    static let failuresTolerated = 5
    static let streamsTolerated = 3
    /// From this attempt on a failed event says more about itself than about its receiver, and counts no more.
    static let attemptsCounted = 3

    /// The divisor of all waits that no receiver asks for; only simulations have another one than 1.
    let speedup: Double

    /// Creates the pace of production.
    package init(speedup: Double = 1) { self.speedup = speedup }

    /// Returns the seconds until an event is sent again after `attempts` failed calls about it.
    func retry(after attempts: Int, _ failure: WebhookFailure) -> Double {
        let usual = Self.retrySeconds[min(max(attempts, 1), Self.retrySeconds.count) - 1]
        return max(usual * .random(in: 0.8...1.2) / speedup, failure.retryAfterSeconds ?? 0)
    }

    /// Returns the seconds of a rest; the first one is number 1.
    func rest(_ number: Int, _ failure: WebhookFailure) -> Double {
        let usual = Self.restSeconds[min(max(number, 1), Self.restSeconds.count) - 1]
        return max(usual / speedup, failure.retryAfterSeconds ?? 0)
    }
}

/// What came back from a call that an owner began.
private struct SentMessage: Sendable {
    let message: WebhookMessage
    let outcome: WebhookOutcome
}

/// A stretch of the feed on its way to a receiver.
private struct OpenWindow {
    let end: Int64
    /// What is not answered yet, by stream, in order.
    var queues: [WebhookStream: ArraySlice<WebhookMessage>] = [:]
    /// The streams whose next event may be sent, in the order of the feed.
    var ready: [WebhookStream] = []
    /// Why the first event of a queue failed.
    var failures: [WebhookStream: WebhookFailure] = [:]
    /// The streams that waited when the window was read, from their first events here on.
    var leftOut: [WebhookStream: Int64] = [:]

    init(_ window: WebhookWindow) {
        end = window.end
        for message in window.messages {
            if message.body == nil {
                leftOut[message.stream] = leftOut[message.stream] ?? message.position
            } else {
                if queues[message.stream] == nil { ready.append(message.stream) }
                queues[message.stream, default: []].append(message)
            }
        }
        ready.reverse()
    }
}

/// The owner of one webhook for as long as its lease lasts: it reads windows of the feed, sends what no stream waits for, and
/// sends beside them what waits.
struct WebhookOwner {
    /// How often it looks for news, in seconds.
    static let lookSeconds = 0.2
    /// After this time a call no longer holds its window up: its stream waits for it. In seconds.
    static let slowSeconds = 2.0
    /// No call begins in the last seconds of a lease, and the lease is renewed some time before.
    static let quietSeconds = 20.0
    static let renewSeconds = 35.0

    let ledger: LedgerWebhooks
    let sender: WebhookSender
    let pace: WebhookPace
    let held: HeldWebhook
    let onOutcome: @Sendable (WebhookOutcome) -> Void

    private var leaseEnd: ContinuousClock.Instant
    private var look: WebhookLook?
    private var window: OpenWindow?
    private var lines: [WebhookMessage] = []
    private var inFlight: [WebhookStream: Flight] = [:]
    private var failuresInRow = 0
    private var failedStreams: Set<WebhookStream> = []
    private var restBecause: WebhookFailure?
    private var isResting = false
    private var isProbing = false
    private var isLost = false

    /// A call that is under way.
    private struct Flight {
        let message: WebhookMessage
        let since = ContinuousClock.now

        /// Whether it may still hold its window up.
        var isQuick: Bool { ContinuousClock.now - since < .seconds(slowSeconds) }
    }

    /// Creates the owner of a webhook whose lease began at `begin`.
    init(
        of held: HeldWebhook, since begin: ContinuousClock.Instant, ledger: LedgerWebhooks, sender: WebhookSender,
        pace: WebhookPace, onOutcome: @escaping @Sendable (WebhookOutcome) -> Void
    ) {
        self.held = held
        self.ledger = ledger
        self.sender = sender
        self.pace = pace
        self.onOutcome = onOutcome
        leaseEnd = begin + .seconds(LedgerWebhooks.leaseSeconds)
    }

    /// Sends until shutdown, or until the webhook is another's. `attempt` runs what may fail, logs it, and returns false then.
    mutating func run(attempt: (_ body: () async throws -> Void) async -> Bool) async {
        await withTaskGroup(of: SentMessage?.self) { group in
            group.addTask { await Self.tick() }
            while !isLost, !Task.isCancelled, ContinuousClock.now < leaseEnd {
                // What takes longer has a line and is sent again.
                if isStopping(), window == nil, !inFlight.values.contains(where: \.isQuick) { break }
                // A failure of the database leaves everything as it was: the next round tries again.
                let isDone = await attempt { try await work(in: &group) }
                // A process that stops does not wait for a database that is away: the window is sent again.
                if !isDone, isStopping() { break }
                guard !isLost, let next = await group.next() else { break }
                if let next {
                    _ = await attempt { try await take(next) }
                } else {
                    group.addTask { await Self.tick() }
                }
            }
            group.cancelAll()
        }
        if !isLost, !Task.isCancelled { _ = await attempt { try await ledger.release(held) } }
    }

    private static func tick() async -> SentMessage? {
        try? await Task.sleep(for: .seconds(lookSeconds))
        return nil
    }

    // MARK: - Deciding

    /// Whether no further call begins until the window is closed.
    private var isEnding: Bool {
        restBecause != nil || isStopping() || leaseEnd - ContinuousClock.now < .seconds(Self.quietSeconds)
    }

    private mutating func work(in group: inout TaskGroup<SentMessage?>) async throws {
        if isWindowDone { try await close() }
        if window == nil, !isLost, let failure = restBecause { try await rest(1, because: failure) }
        if window == nil, !isLost, !isStopping() { try await open() }
        guard !isLost else { return }
        begin(in: &group)
    }

    /// Whether nothing of the window is to be waited for: what is slow goes on beside the next one.
    private var isWindowDone: Bool {
        guard let window else { return false }
        let isSending = inFlight.values.contains { flight in
            window.queues[flight.message.stream]?.first?.position == flight.message.position && flight.isQuick
        }
        if isSending { return false }
        return isEnding || window.ready.isEmpty
    }

    private mutating func open() async throws {
        if leaseEnd - ContinuousClock.now < .seconds(Self.renewSeconds), let look { try await move(to: look.position) }
        guard !isLost, let look = try await ledger.look(at: held) else {
            isLost = true
            return
        }
        self.look = look
        isResting = look.state == .resting
        if isResting {
            if !look.isResting, inFlight.isEmpty { try await probe(look) }
            return
        }
        if look.hasDue, lines.isEmpty {
            lines = try await ledger.lines(of: held, limit: look.concurrency + inFlight.count)
                .filter { inFlight[$0.stream] == nil }.reversed()
        }
        guard look.newest > look.position else { return }
        let next = OpenWindow(try await ledger.window(of: held, look))
        guard next.queues.isEmpty, next.leftOut.isEmpty else {
            window = next
            return
        }
        try await move(to: next.end)
        // A long stretch without an event for this webhook takes no rest.
        if !isLost, !isStopping(), inFlight.isEmpty { try await open() }
    }

    /// Begins calls while there is room: at most one event of a stream at a time, windows before what waits.
    private mutating func begin(in group: inout TaskGroup<SentMessage?>) {
        guard let look else { return }
        let room = isProbing ? 1 : look.concurrency
        var busy: [WebhookStream] = []
        while inFlight.count < room, !isEnding {
            // Half of the room is for what waits, so that neither starves the other.
            let takesLine = !lines.isEmpty && (window?.ready.isEmpty ?? true || inFlight.count % 2 == 1)
            if takesLine {
                guard let message = lines.popLast(), inFlight[message.stream] == nil else { continue }
                send(message, look, in: &group)
            } else {
                guard let stream = window?.ready.popLast() else { break }
                guard inFlight[stream] == nil, let message = window?.queues[stream]?.first else {
                    busy.append(stream)
                    continue
                }
                send(message, look, in: &group)
            }
        }
        window?.ready.append(contentsOf: busy.reversed())
    }

    private mutating func send(_ message: WebhookMessage, _ look: WebhookLook, in group: inout TaskGroup<SentMessage?>)
    {
        inFlight[message.stream] = Flight(message: message)
        group.addTask { [sender] in
            guard let id = message.id, let body = message.body else {
                // It is for no webhook any more, such as an erased customer's: it is done.
                return SentMessage(message: message, outcome: .delivered)
            }
            return SentMessage(
                message: message,
                outcome: await sender.send(WebhookCall(url: look.url, id: id, body: body, secrets: look.secrets)))
        }
    }

    // MARK: - Answers

    private mutating func take(_ answered: SentMessage) async throws {
        let (message, stream) = (answered.message, answered.message.stream)
        inFlight[stream] = nil
        let wasSent = message.body != nil
        if wasSent { onOutcome(answered.outcome) }
        if isProbing { return try await takeProbe(answered) }
        switch answered.outcome {
        case .delivered:
            if wasSent { (failuresInRow, failedStreams, restBecause) = (0, [], nil) }
            if isOfWindow(message) {
                window?.queues[stream]?.removeFirst()
                if window?.queues[stream]?.isEmpty == false { window?.ready.insert(stream, at: 0) }
            } else {
                keep(try await ledger.advance(held, stream, at: message.position))
            }
        case .gone: try await turnOff()
        case .failed(let failure):
            count(failure, of: message)
            if isOfWindow(message) {
                window?.failures[stream] = failure
            } else if restBecause == nil, !isResting {
                let seconds = pace.retry(after: message.attempts + 1, failure)
                keep(try await ledger.fail(held, stream, at: message.position, again: seconds, failure))
            }
        }
    }

    private func isOfWindow(_ message: WebhookMessage) -> Bool {
        window?.queues[message.stream]?.first?.position == message.position
    }

    private mutating func count(_ failure: WebhookFailure, of message: WebhookMessage) {
        guard message.attempts < WebhookPace.attemptsCounted, !isResting else { return }
        failuresInRow += 1
        failedStreams.insert(message.stream)
        if failuresInRow >= WebhookPace.failuresTolerated, failedStreams.count >= WebhookPace.streamsTolerated {
            restBecause = failure
        }
    }

    private mutating func turnOff() async throws {
        keep(try await ledger.set(held, to: .off, because: "Its receiver answered 410, so it wants no more."))
        isLost = true
    }

    // MARK: - The end of a window

    /// Commits what became of the window. It ends before the first event that was not sent, so that a receiver that is away
    /// leaves few lines.
    private mutating func close() async throws {
        guard let window else { return }
        var lines = window.leftOut.map { WebhookLine($0.key, from: $0.value) }
        var end = window.end
        for (stream, queue) in window.queues {
            guard let head = queue.first else { continue }
            if let failure = window.failures[stream] {
                lines.append(
                    WebhookLine(
                        stream, from: head.position, attempts: 1, seconds: pace.retry(after: 1, failure),
                        failure: failure))
            } else if inFlight[stream]?.message.position == head.position {
                lines.append(WebhookLine(stream, from: head.position))
            } else {
                end = min(end, head.position - 1)
            }
        }
        try await move(to: end, lines: lines.filter { $0.isUpTo(end) })
        self.window = nil
    }

    private mutating func move(to position: Int64, lines: [WebhookLine] = []) async throws {
        let begin = ContinuousClock.now
        keep(try await ledger.move(held, to: position, lines: lines))
        // What was seen before is of another position.
        look = nil
        if !isLost { leaseEnd = begin + .seconds(LedgerWebhooks.leaseSeconds) }
    }

    /// Takes the answer of a write under the fence: where the webhook is in other hands, this owner ends.
    private mutating func keep(_ isHeld: Bool) {
        if !isHeld { isLost = true }
    }

    // MARK: - Rests

    private mutating func rest(_ number: Int, because failure: WebhookFailure) async throws {
        (failuresInRow, failedStreams, restBecause, lines, isResting) = (0, [], nil, [], true)
        keep(
            try await ledger.set(
                held, to: .resting, because: failure.reason, rests: number, seconds: pace.rest(number, failure)))
    }

    /// Tries one event after a rest, another one each time: it may be the event that fails and not the receiver.
    private mutating func probe(_ look: WebhookLook) async throws {
        let next = OpenWindow(try await ledger.window(of: held, look))
        let fresh = next.ready.reversed().compactMap { next.queues[$0]?.first }
        let waiting = try await ledger.lines(of: held, limit: LedgerWebhooks.windowEventsMax, all: true)
        let all = fresh + waiting.filter { $0.body != nil }
        guard !all.isEmpty else {
            return keep(try await ledger.set(held, to: .on, because: nil))
        }
        lines = [all[max(look.rests - 1, 0) % all.count]]
        isProbing = true
    }

    private mutating func takeProbe(_ answered: SentMessage) async throws {
        isProbing = false
        switch answered.outcome {
        case .delivered:
            // An event ahead of the position is sent again, in its order.
            keep(try await ledger.advance(held, answered.message.stream, at: answered.message.position))
            keep(try await ledger.set(held, to: .on, because: nil))
        case .gone: try await turnOff()
        case .failed(let failure): try await rest((look?.rests ?? 0) + 1, because: failure)
        }
    }
}

extension Worker {
    /// The most webhooks that one process sends.
    static let webhooksMax = 200

    /// Leases webhooks and sends their events until shutdown, each by itself, so that none delays another.
    func keepWebhooks() async {
        guard let sender = tracker.webhookSender else { return }
        // After a restore nothing is sent under the feed's former id.
        await tracker.checkFeedPlace()
        await withTaskGroup(of: Bool.self) { group in
            var owned = 0
            while !isStopping() {
                let begin = ContinuousClock.now
                let leased = await tracker.attempt("lease webhooks") {
                    try await tracker.ledger.webhooks.lease(limit: Self.webhooksMax - owned)
                }
                for held in leased ?? [] {
                    owned += 1
                    group.addTask {
                        await send(held, since: begin, by: sender)
                        return true
                    }
                }
                group.addTask {
                    await rest(seconds: 1)
                    return false
                }
                while let isOwner = await group.next(), isOwner { owned -= 1 }
            }
        }
    }

    private func send(_ held: HeldWebhook, since begin: ContinuousClock.Instant, by sender: WebhookSender) async {
        var owner = WebhookOwner(
            of: held, since: begin, ledger: tracker.ledger.webhooks, sender: sender,
            pace: WebhookPace(speedup: Double(tracker.ledger.speedup)), onOutcome: { tracker.metrics.sent($0) })
        await owner.run { body in await tracker.attempt("send to webhook \(held.id)") { try await body() } != nil }
    }
}
