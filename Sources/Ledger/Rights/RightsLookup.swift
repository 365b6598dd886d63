import Subscriptions
import Synchronization

/// The current entitlements of customers: from memory where the database reports no change, else from the database.
///
/// The last request for changes starts after the lookup, or at most `behindMillisecondsMax` before it. An answer
/// therefore shows everything that was committed that long before the lookup.
package final class RightsLookup: Sendable {
    /// Where an answer came from.
    package enum Source: String, Sendable, CaseIterable {
        case memory
        case database
    }

    private let ledger: SubscriptionLedger
    private let count: @Sendable (Source, Int) -> Void
    private let memory = Mutex(RightsMemory())

    /// Creates lookups in `ledger`; `count` receives the number of answers from each source.
    package init(_ ledger: SubscriptionLedger, count: @escaping @Sendable (Source, Int) -> Void = { _, _ in }) {
        self.ledger = ledger
        self.count = count
    }

    /// The most by which an answer may lag behind the database, in milliseconds.
    package static var behindMillisecondsMax: Int64 { RightsMemory.behindMillisecondsMax }

    /// Returns a customer's current entitlements, where they are known without a request to the database.
    package func remembered(of customer: CustomerName) -> Rights? {
        let now = ContinuousClock.now
        let (known, wantsLook) = memory.withLock { memory in
            let rights = memory.rights(of: customer, at: now)
            return (rights, rights != nil && memory.wantsLook(at: now))
        }
        guard let known else { return nil }
        count(.memory, 1)
        // Should it fail, the next question that has to wait for a look says why.
        if wantsLook {
            Task { if try await look(since: begin()) != nil { refresh() } }
        }
        return known
    }

    /// How many answers are remembered.
    var rememberedCount: Int { memory.withLock { $0.count } }

    /// Returns the current entitlements of customers, in their order; a customer may be named twice, and an unknown one
    /// has none.
    package func rights(of customers: [CustomerName]) async throws -> [Rights] {
        guard !ledger.reads.mayLag else { return try await read(customers) }
        let (mark, unknown) = memory.withLock { memory in
            let mark = memory.begin(at: ContinuousClock.now)
            return (mark, customers.indices.filter { !memory.probablyKnows(customers[$0], at: mark) })
        }
        async let found = read(unknown.map { customers[$0] }, since: mark)
        guard let time = try await look(since: mark) else { return try await read(customers) }
        let (again, remembered) = memory.withLock { memory in
            let remembered = customers.map { memory.rights(of: $0, at: time, askedAt: mark) }
            return (memory.begin(at: ContinuousClock.now), remembered)
        }
        var answers = remembered
        for (place, rights) in zip(unknown, try await found) { answers[place] = rights }
        let changed = answers.indices.filter { answers[$0] == nil }
        let foundAgain = try await read(changed.map { customers[$0] }, since: again)
        for (place, rights) in zip(changed, foundAgain) { answers[place] = rights }
        count(.memory, customers.count - unknown.count - changed.count)
        count(.database, unknown.count + changed.count)
        refresh()
        return answers.compactMap(\.self)
    }

    private func begin() -> RightsMemory.Mark { memory.withLock { $0.begin(at: ContinuousClock.now) } }

    /// Reads the changes since `mark`; returns the database's clock then, nil where nothing can be kept in memory.
    @discardableResult
    private func look(since mark: RightsMemory.Mark) async throws -> Instant? {
        let changes = try await ledger.customers.rightChanges(since: mark.look)
        memory.withLock { memory in
            if let changes { memory.note(changes, lookingSince: mark) } else { memory.forget() }
        }
        return changes?.time
    }

    /// Begins to read answers again that are probably wanted soon and are out of date, or soon will be.
    private func refresh() {
        let (mark, customers) = memory.withLock { memory in
            let now = ContinuousClock.now
            return (memory.begin(at: now), memory.beginRefresh(at: now))
        }
        guard !customers.isEmpty else { return }
        // If it fails, the next lookup of these customers reads them and reports why.
        Task {
            defer { memory.withLock { $0.endRefresh(of: customers, at: ContinuousClock.now) } }
            _ = try await read(customers, since: mark, asRefresh: true)
        }
    }

    /// Reads entitlements and keeps those that did not change since `mark`.
    private func read(
        _ customers: [CustomerName], since mark: RightsMemory.Mark, asRefresh: Bool = false
    ) async throws -> [Rights] {
        guard !customers.isEmpty else { return [] }
        let found = try await ledger.customers.rights(of: customers)
        memory.withLock { memory in
            let now = ContinuousClock.now
            for (customer, rights) in zip(customers, found) {
                memory.keep(rights, of: customer, readSince: mark, until: now, asRefresh: asRefresh)
            }
        }
        return found
    }

    /// Reads entitlements that may not be kept.
    private func read(_ customers: [CustomerName]) async throws -> [Rights] {
        count(.database, customers.count)
        return try await ledger.customers.entitlements(of: customers).map { Rights($0) }
    }
}
