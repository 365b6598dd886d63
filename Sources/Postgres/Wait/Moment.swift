/// An instant of a clock that only moves forward; used for limits, never stored.
typealias Moment = ContinuousClock.Instant

extension Duration {
    /// Whole milliseconds for `poll`, rounded up so that the limit has passed when `poll` returns; 0 when negative.
    var pollMilliseconds: Int32 {
        guard self > .zero else { return 0 }
        let (seconds, attoseconds) = components
        guard seconds < 1_000_000 else { return 1_000_000_000 }
        return Int32(seconds) * 1_000 + Int32(attoseconds / 1_000_000_000_000_000) + 1
    }
}
