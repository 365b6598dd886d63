/// A limit on the receipts that one process has claimed and not yet settled.
actor CallSlots {
    /// The number of slots.
    let capacity: Int
    private var free: Int
    private var waiting: (atLeast: Int, turn: CheckedContinuation<Void, Never>)?

    init(capacity: Int) {
        self.capacity = capacity
        free = capacity
    }

    /// Takes up to `atMost` slots as soon as `atLeast` are free. One caller at a time.
    func take(atLeast: Int, atMost: Int) async -> Int {
        if free < atLeast {
            await withCheckedContinuation { waiting = (atLeast, $0) }
        }
        let taken = min(free, atMost)
        free -= taken
        return taken
    }

    /// Returns slots.
    func give(_ count: Int) {
        free += count
        guard let waiting, free >= waiting.atLeast else { return }
        self.waiting = nil
        waiting.turn.resume()
    }
}
