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
    var speedup: Double = 1

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

private typealias SentMessage = (message: WebhookMessage, outcome: WebhookOutcome)

/// Events on their way to a receiver: a stretch of the feed, or what waits.
struct OpenWindow {
    let end: Int64
    /// What is not answered yet, by stream, in order.
    var queues: [WebhookStream: ArraySlice<WebhookMessage>] = [:]
    /// The streams whose next event may be sent, the first one last.
    var ready: [WebhookStream] = []
    /// Why the first event of a queue failed.
    var failures: [WebhookStream: WebhookFailure] = [:]
    /// The streams that waited when the window was read, from their first events here on.
    var leftOut: [WebhookStream: Int64] = [:]
    /// Of what waits: where each stream did, and its last event that is done.
    var lines: [WebhookStream: Int64] = [:]
    var done: [WebhookStream: Int64] = [:]

    init(_ messages: some Sequence<WebhookMessage>, end: Int64 = 0) {
        self.end = end
        for message in messages {
            if message.body == nil, message.line == nil {
                leftOut[message.stream] = leftOut[message.stream] ?? message.position
            } else {
                if queues[message.stream] == nil { ready.append(message.stream) }
                lines[message.stream] = message.line
                queues[message.stream, default: []].append(message)
            }
        }
        ready.reverse()
    }

    /// Whether an event is the next one of its stream here.
    func isNext(_ message: WebhookMessage) -> Bool { queues[message.stream]?.first?.position == message.position }

    /// Notes that such an event is done: the next one of the stream may be sent, after those of others.
    mutating func take(_ message: WebhookMessage) {
        queues[message.stream]?.removeFirst()
        done[message.stream] = message.position
        if queues[message.stream]?.isEmpty == false { ready.insert(message.stream, at: 0) }
    }
}

/// The owner of one webhook while its lease lasts: it sends windows of the feed, and beside them what waits.
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

    var leaseEnd: ContinuousClock.Instant
    var look: WebhookLook?
    var lookedAt = ContinuousClock.now
    var window: OpenWindow?
    var waiting: OpenWindow?
    var inFlight: [WebhookStream: Flight] = [:]
    var failuresInRow = 0
    var failedStreams: Set<WebhookStream> = []
    var restBecause: WebhookFailure?
    var isResting = false
    var isProbing = false
    var isLost = false

    struct Flight {
        let message: WebhookMessage
        let since = ContinuousClock.now

        /// Whether it may still hold its window up.
        var isQuick: Bool { ContinuousClock.now - since < .seconds(slowSeconds) }
    }

    /// Sends until shutdown, or until the webhook is another's. `attempt` runs what may fail, logs it, and returns false then.
    mutating func run(attempt: (_ body: () async throws -> Void) async -> Bool) async {
        await withTaskGroup(of: SentMessage?.self) { group in
            group.addTask { await Self.tick() }
            while !isLost, !Task.isCancelled, ContinuousClock.now < leaseEnd {
                // What takes longer has a line and is sent again.
                if isStopping(), window == nil, waiting == nil, !inFlight.values.contains(where: \.isQuick) { break }
                // A failure of the database leaves everything as it was: the next round tries again.
                let isDone = await attempt { try await work(in: &group) }
                // A process that stops does not wait for a database that is away: the window is sent again.
                if !isDone, isStopping() { break }
                guard !isLost, let next = await group.next() else { break }
                if let next { _ = await attempt { try await take(next) } } else { group.addTask { await Self.tick() } }
            }
            group.cancelAll()
        }
        if !isLost, !Task.isCancelled {
            _ = await attempt { _ = try await ledger.move(held, to: nil, leaseSeconds: 0) }
        }
    }

    private static func tick() async -> SentMessage? {
        try? await Task.sleep(for: .seconds(lookSeconds))
        return nil
    }

    /// Whether no further call begins until the window is closed.
    private var isEnding: Bool {
        restBecause != nil || isStopping() || leaseEnd - ContinuousClock.now < .seconds(Self.quietSeconds)
    }

    private mutating func work(in group: inout TaskGroup<SentMessage?>) async throws {
        if let waiting, isDone(waiting) { try await settle(waiting) }
        if let window, !isLost, isDone(window) { try await close(window) }
        if window == nil, waiting == nil, !isLost, let failure = restBecause { try await rest(1, because: failure) }
        // Beside what waits, the next look at the feed has time.
        let isTime = waiting == nil || look == nil || ContinuousClock.now - lookedAt > .seconds(Self.lookSeconds)
        if window == nil, isTime, !isLost, !isStopping() { try await open(in: &group) }
        if !isLost { begin(in: &group) }
    }

    /// Whether nothing of a window is to be waited for: what is slow goes on beside the next one.
    private func isDone(_ window: OpenWindow) -> Bool {
        let isSending = inFlight.values.contains { window.isNext($0.message) && $0.isQuick }
        return !isSending && (isEnding || window.ready.isEmpty)
    }

    private mutating func open(in group: inout TaskGroup<SentMessage?>) async throws {
        if leaseEnd - ContinuousClock.now < .seconds(Self.renewSeconds), let look { try await move(to: look.position) }
        guard !isLost, let look = try await ledger.look(at: held) else { return isLost = true }
        (self.look, lookedAt) = (look, .now)
        isResting = look.state == .resting
        if isResting {
            if !look.isResting, inFlight.isEmpty, !isEnding { try await probe(look, in: &group) }
            return
        }
        if look.hasDue, waiting == nil {
            let due = OpenWindow(try await ledger.lines(of: held).filter { inFlight[$0.stream] == nil })
            if !due.queues.isEmpty { waiting = due }
        }
        guard look.newest > look.position else { return }
        let (messages, end) = try await ledger.window(of: held, look)
        guard messages.isEmpty else { return window = OpenWindow(messages, end: end) }
        try await move(to: end)
        // A long stretch without an event for this webhook takes no rest.
        if !isLost, !isStopping(), inFlight.isEmpty { try await open(in: &group) }
    }

    /// Begins calls while there is room: at most one event of a stream at a time, windows before what waits.
    private mutating func begin(in group: inout TaskGroup<SentMessage?>) {
        guard let look, !isProbing else { return }
        var busy: [WebhookStream] = []
        while inFlight.count < look.concurrency, !isEnding {
            // Half of the room is for what waits, so that neither starves the other.
            let takesLine = window?.ready.isEmpty ?? true || inFlight.count % 2 == 1 && waiting?.ready.isEmpty == false
            guard let stream = takesLine ? waiting?.ready.popLast() : window?.ready.popLast() else { break }
            guard let message = (takesLine ? waiting : window)?.queues[stream]?.first else { continue }
            if inFlight[stream] == nil { send(message, look, in: &group) } else if !takesLine { busy.append(stream) }
        }
        window?.ready.append(contentsOf: busy.reversed())
    }

    private mutating func send(
        _ message: WebhookMessage, _ look: WebhookLook, in group: inout TaskGroup<SentMessage?>
    ) {
        inFlight[message.stream] = Flight(message: message)
        group.addTask { [sender] in
            guard let id = message.id, let body = message.body else {
                // It is for no webhook any more, such as an erased customer's: it is done.
                return (message, .delivered)
            }
            return (message, await sender.send(WebhookCall(url: look.url, id: id, body: body, secrets: look.secrets)))
        }
    }

    private mutating func take(_ answered: SentMessage) async throws {
        let (message, stream, position) = (answered.message, answered.message.stream, answered.message.position)
        inFlight[stream] = nil
        let wasSent = message.body != nil
        if wasSent { onOutcome(answered.outcome) }
        let isOfWindow = window?.isNext(message) ?? false
        let waits = waiting?.isNext(message) ?? false
        switch answered.outcome {
        case .gone:
            _ = try await ledger.set(held, to: .off, because: "Its receiver answered 410, so it wants no more.")
            isLost = true
        case .delivered where isProbing:
            isProbing = false
            // An event ahead of the position is sent again, in its order.
            try await move(lines: [WebhookLine(stream: stream, position: position, done: position)])
            isLost = try await !ledger.set(held, to: .on, because: nil)
        case .delivered:
            if wasSent { (failuresInRow, failedStreams, restBecause) = (0, [], nil) }
            if isOfWindow {
                window?.take(message)
            } else if waits {
                waiting?.take(message)
            } else {
                try await move(lines: [WebhookLine(stream: stream, position: position, done: position)])
            }
        case .failed(let failure) where isProbing:
            isProbing = false
            try await rest((look?.rests ?? 0) + 1, because: failure)
        case .failed(let failure):
            count(failure, of: message)
            if isOfWindow {
                window?.failures[stream] = failure
            } else if restBecause != nil || isResting {
                break
            } else if waits {
                waiting?.failures[stream] = failure
            } else {
                let seconds = pace.retry(after: message.attempts + 1, failure)
                try await move(lines: [
                    WebhookLine(stream: stream, position: position, seconds: seconds, failure: failure)
                ])
            }
        }
    }

    private mutating func count(_ failure: WebhookFailure, of message: WebhookMessage) {
        guard message.attempts < WebhookPace.attemptsCounted, !isResting else { return }
        failuresInRow += 1
        failedStreams.insert(message.stream)
        if failuresInRow >= WebhookPace.failuresTolerated, failedStreams.count >= WebhookPace.streamsTolerated {
            restBecause = failure
        }
    }

    /// Commits what became of the window, up to the first event that was not sent: a dead receiver leaves few lines.
    private mutating func close(_ window: OpenWindow) async throws {
        var lines = window.leftOut.map { WebhookLine(stream: $0.key, position: $0.value) }
        var end = window.end
        for (stream, queue) in window.queues {
            guard let head = queue.first else { continue }
            if let failure = window.failures[stream] {
                let seconds = pace.retry(after: 1, failure)
                lines.append(WebhookLine(stream: stream, position: head.position, seconds: seconds, failure: failure))
            } else if inFlight[stream]?.message.position == head.position {
                lines.append(WebhookLine(stream: stream, position: head.position))
            } else {
                end = min(end, head.position - 1)
            }
        }
        try await move(to: end, lines: lines.filter { $0.position <= end })
        self.window = nil
    }

    /// Commits what became of what waited.
    private mutating func settle(_ waiting: OpenWindow) async throws {
        let lines = waiting.queues.keys.compactMap { stream -> WebhookLine? in
            guard let line = waiting.lines[stream] else { return nil }
            let (done, failure) = (waiting.done[stream], waiting.failures[stream])
            if done == nil, failure == nil { return nil }
            let attempts = waiting.queues[stream]?.first?.attempts ?? 0
            return WebhookLine(
                stream: stream, position: line, done: done,
                seconds: failure.map { pace.retry(after: attempts + 1, $0) }, failure: failure)
        }
        if !lines.isEmpty { try await move(lines: lines) }
        self.waiting = nil
    }

    private mutating func move(to position: Int64? = nil, lines: [WebhookLine] = []) async throws {
        let begin = ContinuousClock.now
        isLost = try await !ledger.move(held, to: position, lines: lines)
        // What was seen before is of another position.
        if position != nil { look = nil }
        if !isLost { leaseEnd = begin + .seconds(LedgerWebhooks.leaseSeconds) }
    }

    private mutating func rest(_ number: Int, because failure: WebhookFailure) async throws {
        (failuresInRow, failedStreams, restBecause, isResting) = (0, [], nil, true)
        isLost = try await !ledger.set(
            held, to: .resting, because: failure.reason, rests: number, seconds: pace.rest(number, failure))
    }

    /// Tries one event after a rest, another one each time: it may be the event that fails and not the receiver.
    private mutating func probe(_ look: WebhookLook, in group: inout TaskGroup<SentMessage?>) async throws {
        let all = OpenWindow(try await ledger.window(of: held, look).0 + ledger.lines(of: held, all: true))
        let heads = all.ready.reversed().compactMap { all.queues[$0]?.first }.filter { $0.body != nil }
        guard !heads.isEmpty else { return isLost = try await !ledger.set(held, to: .on, because: nil) }
        isProbing = true
        send(heads[max(look.rests - 1, 0) % heads.count], look, in: &group)
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
            ledger: tracker.ledger.webhooks, sender: sender, pace: WebhookPace(speedup: Double(tracker.ledger.speedup)),
            held: held, onOutcome: { tracker.metrics.sent($0) }, leaseEnd: begin + .seconds(LedgerWebhooks.leaseSeconds)
        )
        await owner.run { body in await tracker.attempt("send to webhook \(held.id)") { try await body() } != nil }
    }
}
