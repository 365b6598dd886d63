/// Remembers values for a while, and never more than a number of them.
///
/// It is a cache for answers that may be a few seconds old; when it is full, it starts again from nothing.
struct ShortMemory<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let entriesMax: Int
    private let lifetime: Duration
    private var entries: [Key: (value: Value, until: ContinuousClock.Instant)] = [:]

    /// An empty memory of at most `entriesMax` values, each for at most `seconds`.
    init(entriesMax: Int, seconds: Int) {
        self.entriesMax = entriesMax
        lifetime = .seconds(seconds)
    }

    /// How many values are kept, outdated ones included.
    var count: Int { entries.count }

    /// What is remembered at `now`.
    func value(for key: Key, at now: ContinuousClock.Instant) -> Value? {
        guard let entry = entries[key], now < entry.until else { return nil }
        return entry.value
    }

    /// Remembers a value that was true at `now`.
    mutating func keep(_ value: Value, for key: Key, at now: ContinuousClock.Instant) {
        if entries[key] == nil, entries.count >= entriesMax {
            entries = entries.filter { now < $0.value.until }
            if entries.count >= entriesMax { entries.removeAll(keepingCapacity: true) }
        }
        entries[key] = (value, now + lifetime)
    }
}
