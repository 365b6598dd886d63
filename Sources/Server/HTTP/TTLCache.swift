/// A cache with a lifetime and a maximum number of values.
///
/// It is for answers that may be a few seconds old. When it is full of live values, it starts again empty.
struct TTLCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let entriesMax: Int
    private let lifetime: Duration
    private var entries: [Key: (value: Value, until: ContinuousClock.Instant)] = [:]

    /// Creates an empty cache of at most `entriesMax` values, each for at most `seconds`.
    init(entriesMax: Int, seconds: Int) {
        self.entriesMax = entriesMax
        lifetime = .seconds(seconds)
    }

    /// The number of values kept, including expired ones.
    var count: Int { entries.count }

    /// Returns the value cached at `now`.
    func value(for key: Key, at now: ContinuousClock.Instant) -> Value? {
        guard let entry = entries[key], now < entry.until else { return nil }
        return entry.value
    }

    /// Caches a value that was true at `now`.
    mutating func keep(_ value: Value, for key: Key, at now: ContinuousClock.Instant) {
        if entries[key] == nil, entries.count >= entriesMax {
            entries = entries.filter { now < $0.value.until }
            if entries.count >= entriesMax { entries.removeAll(keepingCapacity: true) }
        }
        entries[key] = (value, now + lifetime)
    }
}
