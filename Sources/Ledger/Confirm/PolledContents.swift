import Subscriptions

/// What a receipt polls, as far as the schedule depends on it. It stays the same while answers repeat.
struct PolledContents: Sendable, Hashable {
    let subscriptions: [ScheduleInput]
    /// When its one-time purchases were made.
    let purchasedAt: [Instant]

    /// When time alone next changes something of it; nil for never.
    var lastsUntil: Instant? { subscriptions.compactMap(\.until).min() }

    /// Returns the next check of the receipt, and its lane; nil when something is over, which a full settlement decides.
    func nextCheck(
        in environment: StoreEnvironment, now: Instant, seed: UInt64, policy: Policy
    ) -> (at: Instant, lane: Lane)? {
        var planned: [Instant] = []
        for input in subscriptions {
            let plan = Subscriptions.nextCheck(
                for: [input], environment: environment, now: now, seed: seed, policy: policy)
            guard case .at(let instant) = plan else { return nil }
            planned.append(instant)
        }
        let purchases = Subscriptions.nextCheck(
            for: [], purchasedAt: purchasedAt, environment: environment, now: now, seed: seed, policy: policy)
        if case .at(let instant) = purchases { planned.append(instant) }
        return planned.min().map { ($0, Lane(of: subscriptions, next: $0)) }
    }
}

extension PolledContents {
    /// Creates the contents at Apple's clock `asOf` from what a settlement folded.
    init(subscriptions states: [SubscriptionState], purchases: [PurchaseState], asOf: Instant, policy: Policy) {
        subscriptions = states.compactMap { ScheduleInput(of: $0, at: asOf, policy: policy) }
        purchasedAt = purchases.map(\.purchasedAt)
    }

    /// Reads the text form; nil for a text of another form, such as one of a later program.
    init?(text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "|"), omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        var (inputs, purchases): ([ScheduleInput], [Instant]) = ([], [])
        for part in parts[0].split(separator: UInt8(ascii: ";")) {
            guard let input = ScheduleInput(text: part) else { return nil }
            inputs.append(input)
        }
        for part in parts[1].split(separator: UInt8(ascii: ",")) {
            guard let instant = Instant(text: part) else { return nil }
            purchases.append(instant)
        }
        (subscriptions, purchasedAt) = (inputs, purchases)
    }

    /// The text form for a column: the subscriptions separated by semicolons, a bar, the purchases separated by commas.
    var text: String {
        subscriptions.map(\.text).joined(separator: ";") + "|"
            + purchasedAt.map { "\($0.milliseconds)" }.joined(separator: ",")
    }
}

extension ScheduleInput {
    /// The fields separated by commas; instants are in milliseconds.
    fileprivate var text: String {
        [
            state.rawValue, reason?.rawValue ?? "", "\(since.milliseconds)", until.map { "\($0.milliseconds)" } ?? "",
            accessEndsAt.map { "\($0.milliseconds)" } ?? "", "\(expiresAt.milliseconds)",
            "\(headStartsAt.milliseconds)", renewalExpected ? "renews" : "", isRenewalOff ? "off" : "",
            mayRecover ? "recovers" : "", isGraceAssumed ? "assumed" : "", isMonthly ? "monthly" : "",
        ].joined(separator: ",")
    }

    fileprivate init?(text: Substring.UTF8View) {
        let fields = text.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        guard fields.count == 12, let state = State(rawValue: String(Substring(fields[0]))),
            let since = Instant(text: fields[2]), let expiresAt = Instant(text: fields[5]),
            let headStartsAt = Instant(text: fields[6])
        else { return nil }
        self.init(
            state: state, reason: Reason(rawValue: String(Substring(fields[1]))), since: since,
            until: Instant(text: fields[3]), accessEndsAt: Instant(text: fields[4]), expiresAt: expiresAt,
            headStartsAt: headStartsAt, renewalExpected: !fields[7].isEmpty, isRenewalOff: !fields[8].isEmpty,
            isGraceAssumed: !fields[10].isEmpty, mayRecover: !fields[9].isEmpty, isMonthly: !fields[11].isEmpty)
    }
}

extension Instant {
    fileprivate init?(text: Substring.UTF8View) {
        guard let milliseconds = Int64(Substring(text)) else { return nil }
        self.init(milliseconds: milliseconds)
    }
}
