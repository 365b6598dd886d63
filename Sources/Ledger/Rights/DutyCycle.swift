/// Work in pieces that takes at most half of the time: after each piece it rests as long as the piece took, a second at
/// most.
struct DutyCycle: Sendable {
    private var began: ContinuousClock.Instant?
    private var restsUntil: ContinuousClock.Instant?

    /// Whether a piece may begin at `now`.
    func mayBegin(at now: ContinuousClock.Instant) -> Bool {
        began == nil && restsUntil.map { $0 <= now } ?? true
    }

    /// A piece begins.
    mutating func begin(at now: ContinuousClock.Instant) { began = now }

    /// It is over.
    mutating func end(at now: ContinuousClock.Instant) {
        restsUntil = began.map { now + min(now - $0, .seconds(1)) }
        began = nil
    }
}
