import Subscriptions
import Synchronization

/// What customers may use now: from memory where the database says that nothing of it has changed, else from the
/// database.
///
/// What has changed is asked about after the question came, or was at most `behindMillisecondsMax` before: an answer shows
/// everything that was committed so long before its question.
package final class RightsLookup: Sendable {
    /// Where an answer came from.
    package enum Source: String, Sendable, CaseIterable {
        case memory
        case database
    }

    private let ledger: SubscriptionLedger
    private let count: @Sendable (Source, Int) -> Void
    private let memory = Mutex(RightsMemory())

    /// Lookups in `ledger`; `count` is told how many answers came from where.
    package init(_ ledger: SubscriptionLedger, count: @escaping @Sendable (Source, Int) -> Void = { _, _ in }) {
        self.ledger = ledger
        self.count = count
    }

    /// By how much an answer may be behind the database, in milliseconds.
    package static var behindMillisecondsMax: Int64 { RightsMemory.behindMillisecondsMax }

    /// What a customer may use now, where that is known without asking the database.
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

    /// What customers may use now, in their order; one may be named twice, and whom nobody knows has nothing.
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

    /// Learns what has changed since `mark`; the database's clock then, nil where nothing can be remembered.
    @discardableResult
    private func look(since mark: RightsMemory.Mark) async throws -> Instant? {
        let changes = try await ledger.rightChanges(since: mark.look)
        memory.withLock { memory in
            if let changes { memory.note(changes, lookingSince: mark) } else { memory.forget() }
        }
        return changes?.time
    }

    /// Begins to read again what will probably be asked about soon and does not hold any more, or not for much longer.
    private func refresh() {
        let (mark, customers) = memory.withLock { memory in
            let now = ContinuousClock.now
            return (memory.begin(at: now), memory.beginRefresh(at: now))
        }
        guard !customers.isEmpty else { return }
        // Should it fail, whoever asks about them reads them and says why.
        Task {
            defer { memory.withLock { $0.endRefresh(of: customers, at: ContinuousClock.now) } }
            _ = try await read(customers, since: mark, asRefresh: true)
        }
    }

    /// Reads rights and keeps them, as far as nothing of them has changed since `mark`.
    private func read(
        _ customers: [CustomerName], since mark: RightsMemory.Mark, asRefresh: Bool = false
    ) async throws -> [Rights] {
        guard !customers.isEmpty else { return [] }
        let found = try await ledger.rights(of: customers)
        memory.withLock { memory in
            let now = ContinuousClock.now
            for (customer, rights) in zip(customers, found) {
                memory.keep(rights, of: customer, readSince: mark, until: now, asRefresh: asRefresh)
            }
        }
        return found
    }

    /// Reads what may not be kept.
    private func read(_ customers: [CustomerName]) async throws -> [Rights] {
        count(.database, customers.count)
        return try await ledger.entitlements(of: customers).map { Rights($0) }
    }
}
