package import AppStore
package import Subscriptions

extension Finding {
    /// Determines the outcome of an answer, or of the lack of one: applies the table of outcomes to one app.
    ///
    /// - Parameters:
    ///   - bundleID: The app asked about; nil accepts every app, to explain a stray answer.
    ///   - clock: The instant that an answer without a clock of its own is valid for (legacy receipts).
    ///   - limit: How far Apple's clock is believed.
    package init(in answer: AppStoreAnswer, for bundleID: BundleID?, clock: Instant, limit: ClockLimit = .none) {
        guard let response = answer.response else {
            let reason = answer.failure ?? "Apple's answer is not one of verifyReceipt."
            let kind: CheckFailure.Kind = answer.isHeldBack ? .heldBack : .noUsableAnswer
            self = .indeterminate(CheckFailure(reason: reason, status: nil, retryable: true, kind: kind))
            return
        }
        if let http = answer.httpStatus, http != 200 {
            let reason = "Apple answered with HTTP status \(http)."
            self = .indeterminate(CheckFailure(reason: reason, status: response.status, retryable: true))
            return
        }
        self = Finding(
            in: response, from: answer.environment, for: bundleID,
            clock: AnswerClock(response.requestedAt, clock: clock, limit: limit))
    }

    private init(
        in response: VerifyReceiptResponse, from environment: StoreEnvironment, for bundleID: BundleID?,
        clock: AnswerClock
    ) {
        guard let status = response.status else {
            self = .indeterminate(CheckFailure(reason: "Apple's answer has no status.", status: nil, retryable: true))
            return
        }
        switch StatusMeaning(status) {
        case .genuine:
            self = Finding(vouchedBy: response, from: environment, for: bundleID, clock: clock)
        case .genuineIfRows where !(response.latestReceiptInfo.isEmpty && response.inApp.isEmpty):
            self = Finding(vouchedBy: response, from: environment, for: bundleID, clock: clock)
        case .genuineIfRows:
            let reason = "Apple answered \(status) (expired) without the expired subscription."
            self = .indeterminate(CheckFailure(reason: reason, status: status, retryable: true))
        case .refused(let kind, let reason):
            let retryable = kind.mayHelpToAskAgain(flag: response.isRetryable)
            self = .rejected(Refusal(reason: reason, status: status, retryable: retryable, kind: kind))
        case .failure(let reason):
            let flagged = (21100...21199).contains(status) ? response.isRetryable : nil
            let detail = response.exception.map { " (\($0))" } ?? ""
            self = .indeterminate(CheckFailure(reason: reason + detail, status: status, retryable: flagged ?? true))
        }
    }

    private init(
        vouchedBy response: VerifyReceiptResponse, from environment: StoreEnvironment, for bundleID: BundleID?,
        clock: AnswerClock
    ) {
        let named = response.bundleID
        if let bundleID, named != bundleID {
            let reason =
                named.map { "The app asked about is \(bundleID), the answer is for \($0)." }
                ?? "The app asked about is \(bundleID), the answer names no app."
            self = .rejected(Refusal(reason: reason, status: response.status, retryable: false, kind: .otherBundle))
            return
        }
        switch clock {
        case .believed(let asOf):
            self = .verified(Evidence(in: response, from: environment, asOf: asOf, clockAhead: nil))
        case .clamped(let asOf, let ahead):
            self = .verified(Evidence(in: response, from: environment, asOf: asOf, clockAhead: ahead))
        case .unbelievable(let ahead):
            self = .indeterminate(.clockAhead(by: ahead, status: response.status))
        }
    }
}

/// The meaning of Apple's status codes: https://developer.apple.com/documentation/appstorereceipts/status
private enum StatusMeaning {
    case genuine
    case genuineIfRows
    case refused(Refusal.Kind, String)
    case failure(String)

    init(_ status: Int) {
        switch status {
        case 0: self = .genuine
        case 21006: self = .genuineIfRows
        case 21000:
            self = .refused(.badRequest, "Apple could not read the request (21000); please report this as a bug.")
        case 21003: self = .refused(.notAuthentic, "Apple could not authenticate the receipt (21003).")
        case 21004:
            self = .refused(
                .wrongSecret,
                "The shared secret does not match the app (21004); set it with `perennial app rotate-secret`.")
        case 21007: self = .refused(.wrongEnvironment, "A sandbox receipt where production is asked for (21007).")
        case 21008: self = .refused(.wrongEnvironment, "A production receipt where the sandbox is asked for (21008).")
        case 21010: self = .refused(.accountGone, "The customer's Apple Account was not found or is deleted (21010).")
        case 21002: self = .failure("The receipt is malformed, or Apple has a temporary problem (21002).")
        case 21001, 21005, 21009, 21100...21199: self = .failure("Apple has a temporary problem (\(status)).")
        default: self = .failure("Apple answered with the unknown status \(status).")
        }
    }
}

extension Refusal.Kind {
    /// Returns whether asking again can help, given Apple's flag.
    fileprivate func mayHelpToAskAgain(flag: Bool?) -> Bool {
        switch self {
        case .notAuthentic, .unknownTransaction: true
        case .accountGone: flag ?? true
        case .otherBundle, .wrongSecret, .wrongEnvironment, .badRequest: false
        }
    }
}

extension Evidence {
    func saysTheSame(as other: Evidence) -> Bool {
        transactions == other.transactions && renewals == other.renewals && asOf == other.asOf
            && environment == other.environment && bundleID == other.bundleID && isComplete == other.isComplete
    }
}

/// The limit up to which Apple's clock is believed. It is real time also for a simulated App Store, whose months are
/// short but whose clock is its machine's: no speed-up divides it.
package enum ClockLimit: Sendable {
    /// An answer further ahead of the database's clock than this counts from the database's clock.
    static let aheadMax = Delay.minutes(5)
    /// An answer further ahead than this is not believed at all.
    static let believableMax = Delay.hours(1)

    /// No limit, for an answer that is only inspected.
    case none
    /// At most a little ahead of the database's clock at the time the answer came.
    case database(Instant)
    /// The instant that was believed when the answer was settled.
    case settled(Instant)
}

/// The instant an answer is valid for.
enum AnswerClock: Hashable {
    /// Apple's clock, or the database's where the answer has none.
    case believed(Instant)
    /// The database's clock, because Apple's was ahead of it by `ahead`.
    case clamped(Instant, ahead: Delay)
    /// No instant, because Apple's clock was ahead of the database's by `ahead`.
    case unbelievable(ahead: Delay)

    /// Determines the clock of an answer from its `request_date`; uses `clock` where it has none (legacy receipts).
    init(_ requestedAt: Instant?, clock: Instant, limit: ClockLimit) {
        guard let requestedAt else {
            self = .believed(clock)
            return
        }
        switch limit {
        case .none: self = .believed(requestedAt)
        case .settled(let instant): self = .believed(instant)
        case .database(let now):
            let ahead = requestedAt - now
            if ahead > ClockLimit.believableMax {
                self = .unbelievable(ahead: ahead)
            } else if ahead > ClockLimit.aheadMax {
                self = .clamped(now, ahead: ahead)
            } else {
                self = .believed(requestedAt)
            }
        }
    }

    /// The instant the answer is valid for; nil where Apple's clock is unbelievable.
    var instant: Instant? {
        switch self {
        case .believed(let instant), .clamped(let instant, _): instant
        case .unbelievable: nil
        }
    }

    /// How far Apple's clock was ahead of the database's, if too far; nil otherwise.
    var ahead: Delay? {
        switch self {
        case .believed: nil
        case .clamped(_, let ahead), .unbelievable(let ahead): ahead
        }
    }
}
