/// A notification that the store made, and how sending it went.
struct MadeNotification: Sendable {
    struct Attempt: Sendable {
        let at: StoreTime
        let result: SendResult
    }

    let sequence: Int
    let uuid: String
    let occasion: NotificationOccasion
    let isDropped: Bool
    var attempts: [Attempt] = []

    /// Whether it was tried and never arrived.
    var hasFailed: Bool { !attempts.isEmpty && attempts.allSatisfy { $0.result != .success } }
}

/// Apple's `sendAttemptResult`.
enum SendResult: String, Sendable {
    case success = "SUCCESS"
    case timedOut = "TIMED_OUT"
    case noResponse = "NO_RESPONSE"
    case socketIssue = "SOCKET_ISSUE"
    case prematureClose = "PREMATURE_CLOSE"
    case invalidResponse = "INVALID_RESPONSE"
    case otherStatus = "UNSUCCESSFUL_HTTP_RESPONSE_CODE"

    /// The result of an answer with an HTTP status.
    init(status: Int) { self = (200...206).contains(status) ? .success : .otherStatus }
}

/// One attempt to send a notification.
struct Delivery: Sendable {
    /// Hours of a month of 720 between an attempt and the next one; then Apple gives up.
    private static let retryHours: [Double] = [1, 12, 24, 48, 72]

    let sequence: Int
    let dueAt: StoreTime
    /// From 0.
    let attempt: Int
    /// Whether it is the second copy of one that arrives twice.
    var isCopy = false

    /// Returns the attempt after this one, if it failed. The sandbox tries once.
    func next(at now: StoreTime, _ environment: StoreEnvironment, scale: TimeScale) -> Delivery? {
        switch environment {
        case .sandbox: return nil
        case .production:
            guard attempt < Self.retryHours.count, !isCopy else { return nil }
            let wait = scale.monthMilliseconds * Self.retryHours[attempt] / 720
            return Delivery(sequence: sequence, dueAt: now + max(10, Int64(wait)), attempt: attempt + 1)
        }
    }
}
