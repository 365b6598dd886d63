/// The limits of an upload queue.
public struct UploadLimits: Sendable, Hashable {
    /// The most uploads that wait. A further one is refused with `full`.
    public var entriesMax = 1_000
    /// The longest receipt, in bytes of its Base64.
    public var receiptBytesMax = 4 << 20
    /// The most bytes of all receipts that wait, in Base64: the queue holds them in memory. More are refused with `full`.
    public var totalBytesMax = 64 << 20
    /// The most uploads under way at once.
    public var sendingMax = 4
    /// The longest first wait before an upload is sent again, in seconds; it doubles with each attempt.
    public var retrySecondsMin: Double = 1
    /// The longest wait before an upload is sent again, in seconds, whatever the server advises.
    public var retrySecondsMax: Double = 3_600

    /// The default limits.
    public init() {}

    /// Seconds until an upload is sent again: what the server advises, and up to a bound that doubles with each attempt
    /// (full jitter), so that a thousand devices do not come back at once.
    /// - Parameters:
    ///   - attempts: How often it was sent, from 1.
    ///   - advised: The least seconds, as the server says.
    func retrySeconds(
        after attempts: Int, advised: Double?, using random: (ClosedRange<Double>) -> Double = { .random(in: $0) }
    ) -> Double {
        let doublings = min(max(0, attempts - 1), 30)
        let bound = min(max(0, retrySecondsMax), max(0, retrySecondsMin) * Double(1 << doublings))
        return min(max(0, advised ?? 0) + random(0...bound), max(0, retrySecondsMax))
    }
}
