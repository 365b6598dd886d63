/// A support call to make.
package struct SupportRequest: Sendable {
    /// The key that signs the request.
    package var key: ServerKey
    /// Apple's number of the app; a text of production that names another one is not shown.
    package var appleAppID: Int64?
    /// Where to ask.
    package var environment: Endpoint
    /// What to ask.
    package var question: SupportQuestion
    /// Waits for its turn: returns nil when the call may be made, else the seconds to wait before another question.
    package var turn: @Sendable () async -> Double?

    /// Creates a request; the app's budget is `turn`.
    package init(
        key: ServerKey, appleAppID: Int64?, environment: Endpoint, question: SupportQuestion,
        turn: @escaping @Sendable () async -> Double? = { nil }
    ) {
        self.key = key
        self.appleAppID = appleAppID
        self.environment = environment
        self.question = question
        self.turn = turn
    }
}

/// What became of a support call.
package struct SupportAnswer: Sendable, Hashable {
    /// What Apple said.
    package enum Outcome: Sendable, Hashable {
        /// Apple answered, or did it; texts are verified.
        case done(SupportContents)
        /// Apple did not do it, for this reason; its code where it gave one.
        case refused(String, code: Int?)
        /// There is no answer that can be used, for this reason: Apple may have done it.
        case failed(String, code: Int?)
    }

    /// What Apple said.
    package let outcome: Outcome
    /// How long Apple asks to wait, in seconds; nil where it does not.
    package let retryAfterSeconds: Double?

    /// Creates an answer.
    package init(_ outcome: Outcome, retryAfterSeconds: Double? = nil) {
        self.outcome = outcome
        self.retryAfterSeconds = retryAfterSeconds
    }
}

/// What Apple answered to a support call.
package enum SupportContents: Sendable, Hashable {
    /// Verified transactions in Apple's order, and whether there are more that were not read.
    case transactions([SignedTransaction], goesOn: Bool)
    /// A test notification is on its way; by this token its fate is asked about.
    case test(token: String)
    /// What became of a test notification.
    case testStatus(TestNotification)
    /// A subscription was extended: when it ends now, in milliseconds since 1970.
    case extended(until: Int64?)
    /// How far the extension of all subscriptions is.
    case extensionStatus(ExtensionStatus)
    /// Apple took it.
    case accepted
}

/// A test notification of Apple's, verified.
package struct TestNotification: Sendable, Hashable {
    /// An attempt to deliver it.
    package struct Attempt: Sendable, Hashable {
        /// When, in milliseconds since 1970.
        package let at: Int64
        /// Apple's word for what came of it, such as `SUCCESS` or `TIMED_OUT`.
        package let result: String
    }

    /// `notificationUUID`.
    package let uuid: String
    /// The attempts so far.
    package let attempts: [Attempt]
}

/// How far an extension of all subscriptions of a product is.
package struct ExtensionStatus: Sendable, Hashable {
    /// Whether Apple has tried all of them.
    package let isComplete: Bool
    /// When it was complete, in milliseconds since 1970.
    package let completedAt: Int64?
    /// How many were extended.
    package let succeeded: Int64
    /// How many were not.
    package let failed: Int64
}
