/// The pause before the next attempt to connect. It doubles from 50 ms to 2 s, half of it random; attempts never end.
struct Backoff {
    private static let first = Duration.milliseconds(50)
    private static let longest = Duration.seconds(2)
    private var step = Backoff.first

    /// Returns the next pause. The random half keeps many processes from reconnecting to a restarted server together.
    mutating func next() -> Duration {
        let pause = step / 2 + (step / 2) * Double.random(in: 0...1)
        step = min(step * 2, Self.longest)
        return pause
    }

    /// Starts again from the shortest pause, after a success.
    mutating func reset() { step = Self.first }
}
